// Package gateway is what every request to a model passes. Send sends one request and keeps what the model answers: the native engine calls
// it. A Gateway is an HTTP server on a unix socket, or on a port of 127.0.0.1, that does the same for a program, such as the claude command:
// it holds the key, counts usage while the answer streams, and ends what exceeds the run's limit. It repeats no request: a program repeats
// its requests itself, and the engine knows when that is safe.
package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/request"
)

// Limits of an answer.
const (
	MaxAnswer = 64 << 20        // bytes; the longest answers of today's models have a quarter of it
	Idle      = 5 * time.Minute // wait for the next byte, from the request on
)

// NeverFollow is the CheckRedirect of a client that follows no redirect. A redirect would carry the key to another host, and most of them
// are the log-in page of a network.
func NeverFollow(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Send sends a request whose body is body. keep, which may be nil, is called before. Answered is called when the body of the response has
// ended or is closed, or the request has failed.
func Send(client *http.Client, r *http.Request, body []byte, keep engine.Keep) (*http.Response, error) {
	resp, _, err := send(client, r, body, keep)
	return resp, err
}

func send(client *http.Client, r *http.Request, body []byte, keep engine.Keep) (*http.Response, *flight, error) {
	f := &flight{}
	if keep != nil {
		f.kept = keep(body)
	}
	resp, err := client.Do(r)
	if err != nil {
		f.end(err)
		return nil, f, err
	}
	f.status = resp.StatusCode
	f.ReadCloser, resp.Body = resp.Body, f
	return resp, f, nil
}

// flight is a request whose answer is not complete. It is the body of the response.
type flight struct {
	io.ReadCloser
	kept   engine.Kept
	status int
	whole  bytes.Buffer
	once   sync.Once

	mu    sync.Mutex
	tally tally
	begun bool // Begun was called
}

// Read implements io.Reader.
func (f *flight) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	f.whole.Write(p[:min(n, MaxAnswer-f.whole.Len())])
	f.mu.Lock()
	f.tally.add(p[:n])
	begun := f.tally.begun && !f.begun
	f.begun = f.begun || begun
	f.mu.Unlock()
	if begun && f.kept.Begun != nil {
		f.kept.Begun()
	}
	if err != nil {
		f.end(err)
	}
	return n, err
}

// Close implements io.Closer.
func (f *flight) Close() error { return f.stop(nil) }

// stop closes an answer of which nobody reads more, for a reason that is kept; nil: it is complete, or the service has ended it.
func (f *flight) stop(why error) error {
	f.end(why)
	return f.ReadCloser.Close()
}

// counted returns what is known of the answer so far.
func (f *flight) counted() tally {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tally
}

// end keeps the answer. err is why there is no more of it.
func (f *flight) end(err error) {
	f.once.Do(func() {
		f.mu.Lock()
		f.tally.end()
		f.mu.Unlock()
		t := f.counted()
		a := request.Answer{Status: f.status, Model: t.model, Body: f.whole.Bytes()}
		if t.counted {
			a.Usage = &t.usage
		}
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			a.Cut = reason(err)
		case f.status == http.StatusOK && !t.complete:
			a.Cut = "the connection ended before the answer"
		}
		if f.kept.Answered != nil {
			f.kept.Answered(a)
		}
	})
}
