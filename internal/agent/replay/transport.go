package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
)

// transport takes the place of the network. It compares each request with the recorded one, and gives the recorded answer.
type transport struct {
	w    *walk
	n    int // requests so far
	stop context.CancelCauseFunc
	diff *Difference
	err  error // why the rest of the record cannot be replayed
}

// errOver ends the engine's work when the comparison is over.
var errOver = errors.New("the comparison is over")

// over ends the comparison.
func (t *transport) over(d *Difference, err error) error {
	t.diff, t.err = d, err
	t.stop(errOver)
	return errOver
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.diff != nil || t.err != nil {
		return nil, errOver
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	if n := len(t.w.kept.exchanges); t.n == n && n < t.w.record.Requests {
		return nil, t.over(nil, t.w.unfit(fmt.Errorf("requests.jsonl has %d of its %d requests", n, t.w.record.Requests)))
	}
	if t.n == len(t.w.kept.exchanges) {
		return nil, t.over(t.w.beyond(), nil)
	}
	t.n++
	then, _, err := t.w.r.Asked.Read(t.w.record.ID, t.n)
	if err != nil {
		return nil, t.over(nil, t.w.unfit(err))
	}
	t.w.out.Requests++
	d, err := compare(then, []byte(t.w.r.Hide(string(body))), t.w.record.Reserved > 0)
	if err != nil {
		return nil, t.over(nil, t.w.unfit(err))
	}
	if d != nil {
		d.Request = t.n
		return nil, t.over(d, nil)
	}
	a, err := t.w.kept.answer(t.n)
	if err != nil {
		if t.n == len(t.w.kept.exchanges) { // nothing follows from it
			err = nil
		} else {
			err = t.w.unfit(err)
		}
		return nil, t.over(nil, err)
	}
	return respond(r, a)
}

// beyond returns the difference that one more request is; nil if the run was cut off before it could be sent.
func (w *walk) beyond() *Difference {
	switch w.record.Outcome {
	case runlog.OK, runlog.Unreported, runlog.Waiting, runlog.Expired:
		return &Difference{Request: len(w.kept.exchanges) + 1, Field: "request", Then: "none", Now: "another request"}
	}
	return nil
}

// respond returns an answer as a service gives it.
func respond(r *http.Request, a request.Answer) (*http.Response, error) {
	if a.Status == 0 {
		if strings.Contains(a.Cut, "EOF") || strings.Contains(a.Cut, "reset") {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, errors.New(a.Cut)
	}
	body := io.Reader(bytes.NewReader(a.Body))
	if a.Cut != "" {
		body = io.MultiReader(body, broken{})
	}
	kind := "text/event-stream"
	if a.Status != http.StatusOK {
		kind = "application/json"
	}
	return &http.Response{
		StatusCode: a.Status, Status: http.StatusText(a.Status), Proto: r.Proto, ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(body), ContentLength: -1,
	}, nil
}

// broken is the end of an answer that broke off.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
