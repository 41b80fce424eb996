package apitest

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"
)

// answer is the response to one request, on its way.
type answer struct {
	w   http.ResponseWriter
	ctx context.Context // ends when the client goes away or the server closes
	id  string
}

// give sends a reply, faults included.
func (a answer) give(q Request, r Reply) {
	if !a.held(r.Hold) || !a.pause(r.Delay) {
		a.cut()
	}
	for key, values := range r.Header {
		a.w.Header()[http.CanonicalHeaderKey(key)] = values
	}
	switch {
	case r.Fault == HangUp:
		a.cut()
	case r.Fault == Mute:
		a.silence()
	case r.Fault == WrongContentType:
		a.send(http.StatusOK, "text/html; charset=utf-8", []byte("<!DOCTYPE html><title>Log in</title><h1>Log in to the network</h1>\n"))
	case r.isError(q.Stream):
		a.fail(r)
	case q.Stream:
		a.stream(q, r)
	default:
		a.spoilt(r, encode(r.message(q)))
	}
}

// fail sends an error of the API. The header x-should-retry decides what clients do: claude gives up at once on "false", and
// without it tries a 401 again as often as it may. The API has been seen to send "true" with 429 and "false" with 400 and 404;
// the rest follows from that.
func (a answer) fail(r Reply) {
	r = r.completed()
	retry := r.Status == http.StatusRequestTimeout || r.Status == http.StatusConflict ||
		r.Status == http.StatusTooManyRequests || r.Status >= 500
	a.header("X-Should-Retry", strconv.FormatBool(retry))
	if r.RetryAfter != "" {
		a.header("Retry-After", r.RetryAfter)
	}
	a.whole(r.Status, errorBody{"error", errorDetail{r.ErrorType, r.Message}, a.id})
}

// spoilt sends a body that is not streamed, with its fault.
func (a answer) spoilt(r Reply, body []byte) {
	half := body[:len(body)/2]
	switch r.Fault {
	case Cut, Silent, Endless:
		a.header("Content-Length", strconv.Itoa(len(body)))
		a.send(http.StatusOK, "application/json", half)
		if r.Fault == Cut {
			a.cut()
		}
		a.silence()
	case Short, Malformed:
		body = half
	}
	a.send(http.StatusOK, "application/json", body)
}

// stream sends the events of a reply, with its fault.
func (a answer) stream(q Request, r Reply) {
	a.header("Cache-Control", "no-cache")
	a.send(http.StatusOK, "text/event-stream; charset=utf-8", nil)
	list := events(r.message(q))
	if r.Fault == Endless {
		a.endless(r, q)
	}
	for i, e := range list {
		if i == r.After && a.fault(r) {
			return
		}
		a.event(e, r.StreamDelay)
	}
	if r.After >= len(list) {
		a.fault(r)
	}
}

// fault does what goes wrong at this point of the stream; done says that nothing may follow.
func (a answer) fault(r Reply) (done bool) {
	switch r.Fault {
	case Cut:
		a.cut()
	case Short:
		return true
	case Silent:
		a.silence()
	case Malformed:
		a.push([]byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"ty\n\n"))
	case ErrorEvent:
		r.Status = 0
		r = r.completed()
		a.event(event{Type: "error", Error: &errorDetail{r.ErrorType, r.Message}, Request: a.id}, 0)
		return true
	}
	return false
}

const endlessDelay = time.Millisecond // at least, so that a reader can keep up

func (a answer) endless(r Reply, q Request) {
	m := Reply{Text: cmp.Or(r.Text, "and so on ")}.message(q)
	list := events(m)
	for _, e := range list[:3] {
		a.event(e, r.StreamDelay)
	}
	for {
		a.event(list[3], max(r.StreamDelay, endlessDelay))
	}
}

// event waits and sends. A reader that has gone ends the response.
func (a answer) event(e event, delay time.Duration) {
	if !a.pause(delay) {
		a.cut()
	}
	a.push(e.frame())
}

func (a answer) push(b []byte) {
	_, err := a.w.Write(b)
	if err == nil {
		err = http.NewResponseController(a.w).Flush()
	}
	if err != nil {
		a.cut()
	}
}

// whole sends a JSON body.
func (a answer) whole(status int, v any) { a.send(status, "application/json", encode(v)) }

func (a answer) send(status int, contentType string, body []byte) {
	a.header("Content-Type", contentType)
	a.header("Request-Id", a.id)
	a.w.WriteHeader(status)
	a.push(body)
}

// header sets one unless the reply did.
func (a answer) header(key, value string) {
	if _, set := a.w.Header()[key]; !set {
		a.w.Header().Set(key, value)
	}
}

// held waits until the test lets go.
func (a answer) held(hold <-chan struct{}) bool {
	if hold == nil {
		return true
	}
	select {
	case <-hold:
		return true
	case <-a.ctx.Done():
		return false
	}
}

func (a answer) pause(d time.Duration) bool {
	if d <= 0 {
		return a.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.ctx.Done():
		return false
	}
}

// silence keeps the connection open and says nothing.
func (a answer) silence() {
	<-a.ctx.Done()
	a.cut()
}

// cut breaks the connection; it does not return.
func (a answer) cut() { panic(http.ErrAbortHandler) }
