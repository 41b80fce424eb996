package provider

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/gateway"
	"github.com/ollim/ollim/internal/platform/plaintext"
)

// exchange is one request and the stream that answers it. It ends when the service is silent for too long, and keeps what
// failed first.
type exchange struct {
	ctx    context.Context // ends with the caller's, or when the service has been silent for too long
	cancel context.CancelCauseFunc
	client http.Client
	o      Options
	model  string
	sent   engine.Keep // as in Request
	timer  *time.Timer
	host   string // "": nothing was sent yet
	fail   error  // what failed first
}

var errIdle = errors.New("idle")

func open(ctx context.Context, o Options, model string, sent engine.Keep) *exchange {
	x := &exchange{client: *o.Client, o: o, model: model, sent: sent}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.timer = time.AfterFunc(o.Idle, func() { x.cancel(errIdle) })
	x.timer.Stop()
	x.client.CheckRedirect = gateway.NeverFollow
	return x
}

func (x *exchange) close() {
	x.timer.Stop()
	x.cancel(nil)
}

// events sends a request and yields the events of the answer. An error is the last that it yields; without one the stream has
// ended.
func events[E interface{ failed() bool }](x *exchange, address string, header map[string]string, request any) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		stream, err := x.send(address, header, request)
		if err != nil {
			yield(none, x.reason(err))
			return
		}
		defer func() { _ = stream.Close() }()
		in := feed{bufio.NewReader(&lines{ReadCloser: stream, mark: "\ufeff"})}
		for {
			var e E
			raw, failed, err := in.next()
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				err = x.reason(err)
			case failed:
				err = x.refusal(raw).err()
			default:
				if err = json.Unmarshal(raw, &e); err != nil {
					err = x.reason(fmt.Errorf("an invalid event: %w", err))
				} else if e.failed() {
					err = x.refusal(raw).err()
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// send returns the body of a response that is a stream of events.
func (x *exchange) send(address string, header map[string]string, request any) (io.ReadCloser, error) {
	var raw bytes.Buffer
	encoder := json.NewEncoder(&raw)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(request); err != nil {
		return nil, err
	}
	text := raw.Bytes()
	req, err := http.NewRequestWithContext(x.ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return nil, x.failed(unreachable("", err))
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "ollim")
	x.host = req.URL.Host
	x.timer.Reset(x.o.Idle)
	resp, err := gateway.Send(&x.client, req, text, x.sent)
	x.timer.Stop()
	if err != nil {
		return nil, x.failed(unreachable(x.host, err))
	}
	resp.Body = &body{ReadCloser: resp.Body, of: x}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && (kind == "text/event-stream" || kind == "") {
		return resp.Body, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, x.failed(x.refused(resp, kind))
}

// failed keeps the first failure.
func (x *exchange) failed(err error) error {
	if x.fail == nil {
		x.fail = err
	}
	return err
}

// reason returns why there is no complete answer; err is nil if the stream just ended.
func (x *exchange) reason(err error) error {
	switch cause := context.Cause(x.ctx); {
	case errors.Is(cause, errIdle):
		return fmt.Errorf("%w: no data from %s for %s", ErrCut, x.host, x.o.Idle)
	case cause != nil:
		return cause
	case x.fail != nil:
		return x.fail
	case err == nil:
		return fmt.Errorf("%w by %s", ErrCut, x.host)
	case x.host == "":
		return fmt.Errorf("%w: the request cannot be sent: %s", engine.ErrUnavailable, short(err.Error()))
	}
	return fmt.Errorf("%w: %s: %s", ErrGarbled, x.host, short(err.Error()))
}

// unreachable returns the error of a request that got no response.
func unreachable(host string, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // else it shows the address with what may be secret in it
	}
	why := plaintext.Line(err.Error())
	op, isOp := errors.AsType[*net.OpError](err)
	begun := isOp && (op.Op == "read" || op.Op == "write")
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		begun = begun || errors.Is(err, end)
	}
	if begun {
		return fmt.Errorf("%w: %s closed the connection: %s", ErrCut, host, why)
	}
	if host == "" {
		return fmt.Errorf("%w: the request cannot be sent: %s", engine.ErrUnavailable, why)
	}
	return fmt.Errorf("%w to %s: %s", ErrUnreached, host, why)
}

// body is the body of a response. Its reads are limited in time and size.
type body struct {
	io.ReadCloser
	of   *exchange
	read int64
}

// Read runs the timer only while it waits: a slow reader is not a silent service.
func (b *body) Read(p []byte) (int, error) {
	x := b.of
	x.timer.Reset(x.o.Idle)
	n, err := b.ReadCloser.Read(p)
	x.timer.Stop()
	b.read += int64(n)
	if b.read > x.o.limit {
		return n, x.failed(fmt.Errorf("%w: more than %d bytes from %s without an end", ErrGarbled, x.o.limit, x.host))
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // else it shows both addresses
	}
	return n, x.failed(fmt.Errorf("%w by %s: %s", ErrCut, x.host, plaintext.Line(err.Error())))
}
