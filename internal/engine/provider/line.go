package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
)

// line is the way to a service for one request: the HTTP client that the vendors' libraries are given. It keeps what goes wrong,
// for they lose headers, cannot tell a broken connection from an end, and wait for ever.
type line struct {
	ctx    context.Context // ends with the caller's, or when the service has been silent for too long
	cancel context.CancelCauseFunc
	client http.Client
	o      Options
	model  string
	timer  *time.Timer
	host   string    // "": nothing was sent yet
	stream io.Reader // the response that Do returned
	fail   error     // what went wrong first
}

var errIdle = errors.New("idle")

func open(ctx context.Context, o Options, model string) *line {
	l := &line{client: *o.Client, o: o, model: model}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	l.timer = time.AfterFunc(o.Idle, func() { l.cancel(errIdle) })
	l.timer.Stop()
	// A redirect would carry the key to another host, and most of them are the log-in page of a network.
	l.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return l
}

func (l *line) close() {
	l.timer.Stop()
	l.cancel(nil)
}

// Do sends the request. A response that it returns is a stream of events.
func (l *line) Do(req *http.Request) (*http.Response, error) {
	l.host = req.URL.Host
	l.timer.Reset(l.o.Idle)
	resp, err := l.client.Do(req)
	l.timer.Stop()
	if err != nil {
		return nil, l.failed(unreachable(l.host, err))
	}
	resp.Body = &body{ReadCloser: resp.Body, line: l}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && (kind == "text/event-stream" || kind == "") {
		resp.Body = &lines{ReadCloser: resp.Body, mark: "\ufeff"}
		l.stream = resp.Body
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, l.failed(l.refused(resp, kind))
}

// failed keeps the first failure.
func (l *line) failed(err error) error {
	if l.fail == nil {
		l.fail = err
	}
	return err
}

// reason is why there is no complete answer; err is what the library says, nil if the stream just ended.
func (l *line) reason(err error) error {
	switch cause := context.Cause(l.ctx); {
	case errors.Is(cause, errIdle):
		return fmt.Errorf("%w: nothing came from %s for %s", ErrCut, l.host, l.o.Idle)
	case cause != nil:
		return cause
	case l.fail != nil:
		return l.fail
	case err == nil:
		return fmt.Errorf("%w by %s", ErrCut, l.host)
	case l.host == "":
		return fmt.Errorf("%w: the request cannot be sent: %s", engine.ErrUnavailable, short(err.Error()))
	}
	return fmt.Errorf("%w: %s: %s", ErrGarbled, l.host, short(err.Error()))
}

// unreachable is the error of a request that got no response.
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
		return fmt.Errorf("%w: %s hung up: %s", ErrCut, host, why)
	}
	if host == "" {
		return fmt.Errorf("%w: the request cannot be sent: %s", engine.ErrUnavailable, why)
	}
	return fmt.Errorf("%w to %s: %s", ErrUnreached, host, why)
}

// body is a response's, under watch.
type body struct {
	io.ReadCloser
	line *line
	read int64
}

// Read lets the clock run only while it waits: a slow reader is not a silent service.
func (b *body) Read(p []byte) (int, error) {
	l := b.line
	l.timer.Reset(l.o.Idle)
	n, err := b.ReadCloser.Read(p)
	l.timer.Stop()
	b.read += int64(n)
	if b.read > l.o.limit {
		return n, l.failed(fmt.Errorf("%w: more than %d bytes came from %s without an end", ErrGarbled, l.o.limit, l.host))
	}
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // else it shows both addresses
	}
	return n, l.failed(fmt.Errorf("%w by %s: %s", ErrCut, l.host, plaintext.Line(err.Error())))
}
