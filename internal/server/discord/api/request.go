package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// Bounds of the repetitions of one request.
const (
	maxTries   = 5
	firstPause = 250 * time.Millisecond // doubles with every attempt
	maxPause   = time.Minute            // what takes longer is left to the caller
	maxAnswer  = 32 << 20
)

// request is one request, to be made as often as it takes.
type request struct {
	method   string
	route    string // whose rate limit counts, with the method; "" for interactions, which have none that lasts
	path     string // below the API's
	body     any    // nil is none
	files    []messenger.File
	safe     bool  // a repetition of a request that was carried out does no harm
	once     bool  // never repeated
	repeated *bool // set when a request is repeated that may have been carried out
}

// do makes a request until it is answered, and decodes the answer.
func (c *Client) do(ctx context.Context, r request, into any) error {
	if strings.ContainsFunc(c.o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%w: it has characters that no token has", ErrToken)
	}
	kind, data, err := r.encode()
	if err != nil {
		return err
	}
	var last error
	for try := range maxTries {
		limit, err := c.pass(ctx, r)
		if err != nil {
			return cmp.Or(last, err)
		}
		answer, err := c.attempt(ctx, r, kind, data, limit)
		if err == nil {
			return decode(answer, into)
		}
		wait, again := r.again(err, try)
		switch {
		case ctx.Err() != nil:
			return ended(ctx, cmp.Or(last, err))
		case !again || try == maxTries-1 || c.late(ctx, wait):
			return err
		case r.repeated != nil && !limited(err):
			*r.repeated = true
		}
		last = err
		if c.o.Sleep(ctx, wait) != nil {
			return ended(ctx, last)
		}
	}
	return last
}

// pass waits for the rate limits, and returns that of the request.
func (c *Client) pass(ctx context.Context, r request) (*route, error) {
	for {
		limit, wait := c.limits.reserve(r.method, r.route, c.o.Now())
		if wait <= 0 {
			return limit, nil
		}
		if r.once || wait > maxPause || c.late(ctx, wait) {
			return nil, &Error{Status: http.StatusTooManyRequests, After: wait}
		}
		if c.o.Sleep(ctx, wait) != nil {
			return nil, ended(ctx, nil)
		}
	}
}

// late reports whether the context ends before a wait does.
func (c *Client) late(ctx context.Context, wait time.Duration) bool {
	end, ok := ctx.Deadline()
	return ok && c.o.Now().Add(wait).After(end)
}

func limited(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == http.StatusTooManyRequests
}

// again reports whether to make the request once more, and after how long.
func (r request) again(err error, try int) (time.Duration, bool) {
	switch {
	case r.once || messenger.IsPermanent(err):
		return 0, false
	case limited(err):
		e, _ := errors.AsType[*Error](err)
		return e.After, e.After <= maxPause
	}
	pause := firstPause << try
	return pause + rand.N(pause/2), r.safe
}

// encode returns the body and its content type.
func (r request) encode() (kind string, data []byte, err error) {
	switch {
	case r.body == nil:
		return "", nil, nil
	case len(r.files) == 0:
		data, err = json.Marshal(r.body)
		return "application/json", data, err
	}
	var files []*discordgo.File
	for _, f := range r.files {
		files = append(files, &discordgo.File{Name: f.Name, ContentType: f.Type, Reader: bytes.NewReader(f.Data)})
	}
	return discordgo.MultipartBodyWithJSON(r.body, files)
}

// attempt makes the request once and returns the body of a success.
func (c *Client) attempt(ctx context.Context, r request, kind string, data []byte, limit *route) ([]byte, error) {
	var a *http.Response
	q, err := http.NewRequestWithContext(ctx, r.method, c.o.Base+"/api/v"+discordgo.APIVersion+r.path, bytes.NewReader(data))
	if err == nil {
		q.Header.Set("Authorization", "Bot "+c.o.Token)
		q.Header.Set("User-Agent", c.Agent())
		if kind != "" {
			q.Header.Set("Content-Type", kind)
		}
		a, err = c.http.Do(q)
	}
	if err != nil {
		c.limits.note(limit, r.method, r.route, nil, c.o.Now())
		return nil, withoutAddress(err)
	}
	defer func() { _ = a.Body.Close() }() // it was read as far as anybody wants it
	c.compare(a.Header.Get("Date"))
	answer, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer))
	c.limits.note(limit, r.method, r.route, a.Header, c.o.Now())
	switch {
	case a.StatusCode >= 300:
		failed := errorOf(a.StatusCode, a.Header, answer)
		c.limits.refused(r.method, r.route, failed, c.o.Now())
		return nil, failed
	case err != nil:
		return nil, withoutAddress(err)
	}
	return answer, nil
}

// Agent returns the User-Agent of requests, in the form that Discord asks for.
func (*Client) Agent() string {
	version := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = strings.Trim(info.Main.Version, "()")
	}
	return "DiscordBot (https://github.com/ollim/ollim, " + cmp.Or(version, "devel") + ")"
}

// errorOf reads an answer that is not a success. One that is not Discord's own form comes from something in between, so it says
// nothing about the next attempt.
func errorOf(status int, header http.Header, data []byte) *Error {
	var said struct {
		Message *string         `json:"message"`
		Code    int             `json:"code"`
		After   float64         `json:"retry_after"`
		Global  bool            `json:"global"`
		Errors  json.RawMessage `json:"errors"`
	}
	failed := &Error{Status: status, Message: http.StatusText(status)}
	if json.Unmarshal(data, &said) == nil && said.Message != nil {
		failed.Code, failed.Message, failed.kind = said.Code, *said.Message, kindOf(status, said.Code)
		if len(said.Errors) > 0 {
			failed.Message += ": " + string(said.Errors[:min(len(said.Errors), 500)])
		}
	}
	if status == http.StatusTooManyRequests {
		after := said.After
		if seconds, err := strconv.ParseFloat(header.Get("Retry-After"), 64); err == nil {
			after = max(after, seconds)
		}
		failed.After = max(seconds(after), 50*time.Millisecond)
		failed.global = said.Global || header.Get("X-RateLimit-Global") != "" || header.Get("X-RateLimit-Scope") == "global"
	}
	return failed
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// decode reads the body of a success.
func decode(data []byte, into any) error {
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return unreadable(err)
	}
	return nil
}

// withoutAddress returns the error of a connection without the address, which may contain the token of an interaction.
func withoutAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%w: %w", errUnreachable, err)
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
