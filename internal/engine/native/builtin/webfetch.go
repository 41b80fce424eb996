package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/policy"
)

const (
	fetchTimeout   = 30 * time.Second
	fetchRedirects = 5
	fetchBytes     = 5 << 20
	fetchChars     = 60000
)

func callWebFetch(ctx context.Context, b *Box, in struct {
	URL string `json:"url"`
}) (string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("no answer within %s", fetchTimeout))
	defer stop()
	text, err := fetch(ctx, cmp.Or(b.client, fetcher(isPublic)), in.URL)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", in.URL, err)
	}
	return text, err
}

// fetch gets a page. It follows redirects within the host.
func fetch(ctx context.Context, client *http.Client, address string) (string, error) {
	host, err := policy.PublicHost(address)
	if err != nil {
		return "", err
	}
	for range fetchRedirects + 1 {
		next, text, err := fetchOne(ctx, client, address)
		if err != nil || next == "" {
			return text, err
		}
		switch to, err := policy.PublicHost(next); {
		case err != nil:
			return "", fmt.Errorf("it redirects to %q, which may not be fetched: %w", next, err)
		case to != host, strings.HasPrefix(address, "https:") && !strings.HasPrefix(next, "https:"):
			return fmt.Sprintf("The page redirects to another address, which was not fetched. To fetch it, call WebFetch with:\n%s", next), nil
		}
		address = next
	}
	return "", fmt.Errorf("more than %d redirects", fetchRedirects)
}

// fetchOne sends one request. It returns the address of a redirect, or the page.
func fetchOne(ctx context.Context, client *http.Client, address string) (next, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", "", err
	}
	request.Header.Set("User-Agent", "ollim")
	request.Header.Set("Accept", "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/*;q=0.8, application/json;q=0.8, */*;q=0.1")
	once := *client
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r, err := once.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return "", "", err
	}
	defer func() { _ = r.Body.Close() }()
	switch r.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		to, err := r.Location()
		if err != nil {
			return "", "", errors.New("it redirects without an address")
		}
		return to.String(), "", nil
	}
	text, err = readBody(ctx, r)
	if err == nil && r.StatusCode/100 != 2 {
		const most = 2000
		text, err = first(text, most), fmt.Errorf("the server answered %s", cut(clean(r.Status), 200, false))
	}
	return "", text, err
}

// readBody returns the text of a page.
func readBody(ctx context.Context, r *http.Response) (string, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, fetchBytes+1))
	if err != nil {
		return "", err
	}
	more := len(body) > fetchBytes
	if more {
		body = plaintext.WholeRunes(body[:fetchBytes])
	}
	named := r.Header.Get("Content-Type")
	if named == "" {
		named = http.DetectContentType(body)
	}
	kind, parameters, _ := mime.ParseMediaType(named) // an invalid parameter does not matter
	if !readable(kind) {
		size := fmt.Sprintf("%d bytes", max(r.ContentLength, int64(len(body))))
		if more && r.ContentLength < 0 {
			size = fmt.Sprintf("more than %d MiB", fetchBytes>>20)
		}
		return "", fmt.Errorf("it is not text but %s, %s", cut(clean(kind), 100, false), size)
	}
	isPage := kind == "text/html" || kind == "application/xhtml+xml"
	charset := parameters["charset"]
	if isPage && charset == "" {
		charset = declared(body)
	}
	text, err := decoded(body, charset)
	if err != nil {
		return "", err
	}
	if isPage {
		page := text
		if text, err = soon(ctx, func(context.Context) (string, error) { return markdown(page, r.Request.URL, fetchChars+1) }); err != nil {
			return "", err
		}
	}
	if more {
		text += fmt.Sprintf("\n(the page is longer than %d MiB; only that much was read)", fetchBytes>>20)
	}
	if strings.TrimSpace(text) == "" {
		return "(the page has no text)", nil
	}
	return first(text, fetchChars), nil
}

// first returns the beginning of a text, with a note if it was cut.
func first(s string, most int) string {
	s, more := plaintext.First(s, most)
	if more {
		s += fmt.Sprintf("\n(cut at %d characters)", most)
	}
	return s
}

// readable reports whether a media type is text.
func readable(kind string) bool {
	others := `json xml xhtml+xml javascript ecmascript yaml x-yaml toml x-ndjson jsonl x-sh sql rtf x-tex`
	if other, ok := strings.CutPrefix(kind, "application/"); ok && slices.Contains(strings.Fields(others), other) {
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml")
}

// declared returns the charset that a page declares at its beginning.
func declared(body []byte) string {
	const enough = 1024 // bytes; browsers search no further
	m := regexp.MustCompile(`(?i)<meta[^>]*charset\s*=\s*["']?([-\w]+)`).FindSubmatch(body[:min(len(body), enough)])
	if m == nil {
		return ""
	}
	return string(m[1])
}

// decoded returns a body as UTF-8. A body that declares no charset and is not valid UTF-8 is taken for Windows-1252, as browsers do.
func decoded(body []byte, charset string) (string, error) {
	switch charset = strings.ToLower(strings.Trim(charset, ` "'`)); {
	case utf8.Valid(body):
		return strings.TrimPrefix(string(body), "\ufeff"), nil
	case charset == "utf-8" || charset == "utf8":
		return string(body), nil // it is invalid in places, or cut; clean repairs that later
	case !slices.Contains([]string{"", "us-ascii", "iso-8859-1", "latin1", "windows-1252", "cp1252"}, charset):
		return "", fmt.Errorf("its character set, %s, is not supported", cut(clean(charset), 50, false))
	}
	const from80 = "€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ"
	high := []rune(from80)
	text := make([]rune, len(body))
	for i, c := range body {
		if text[i] = rune(c); c >= 0x80 && c < 0xa0 {
			text[i] = high[c-0x80]
		}
	}
	return string(text), nil
}
