package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Fault is a fault of a response. One that is not streamed fails in the middle of its body, whatever [Way.After] is.
type Fault int

// The faults.
const (
	NoFault          Fault = iota
	HangUp                 // the connection is closed without any response
	Mute                   // no response, and the connection stays open until the client or the test ends
	Cut                    // the connection breaks
	Short                  // the response ends properly, but too early
	Silent                 // the rest is missing, and the connection stays open until the client or the test ends
	Malformed              // an event that is not JSON is sent among the others
	ErrorEvent             // an event with an error ends the response
	WrongContentType       // a page of HTML with status 200, as captive portals send
	Endless                // text is sent for ever, at least a millisecond apart
)

// Way is how a response is delivered to the client.
type Way struct {
	Hold        <-chan struct{} // wait for it to be closed before anything is sent
	Delay       time.Duration   // wait before the headers
	StreamDelay time.Duration   // wait before each event
	Header      http.Header     // they win over the server's own, and one without values removes it
	Fault       Fault
	After       int // how many events arrive before Cut, Short, Silent, Malformed and ErrorEvent
}

// Stream is the events of a response, each in its wire format.
type Stream struct {
	Events    []string
	Endless   int    // the number of the event that repeats for ever, from 0
	Malformed string // the event that is not JSON
	Error     string
}

// Answer is the response to one request. If the client is gone, or the server closes, its methods do not return.
type Answer struct {
	w   http.ResponseWriter
	ctx context.Context // ends when the client goes away or the server closes
}

// Body reads the body of the request; one of more than most bytes is an error.
func (a Answer) Body(r *http.Request, most int64) ([]byte, error) {
	return io.ReadAll(http.MaxBytesReader(a.w, r.Body, most))
}

// Begin waits, and takes over the headers. done reports that the fault leaves nothing to answer.
func (a Answer) Begin(w Way) (done bool) {
	if w.Hold != nil {
		select {
		case <-w.Hold:
		case <-a.ctx.Done():
			a.cut()
		}
	}
	a.pause(w.Delay)
	for key, values := range w.Header {
		a.w.Header()[http.CanonicalHeaderKey(key)] = values
	}
	switch w.Fault {
	case HangUp:
		a.cut()
	case Mute:
		a.silence()
	case WrongContentType:
		a.send(http.StatusOK, "text/html; charset=utf-8", []byte("<!DOCTYPE html><title>Log in</title><h1>Log in to the network</h1>\n"))
		return true
	}
	return false
}

// Header sets a header unless the reply has set it, or value is "".
func (a Answer) Header(key, value string) {
	if _, set := a.w.Header()[key]; !set && value != "" {
		a.w.Header().Set(key, value)
	}
}

// JSON sends v as the whole body.
func (a Answer) JSON(status int, v any) { a.send(status, "application/json", Encode(v)) }

// Whole sends v as the body of a response that is not streamed, with its fault.
func (a Answer) Whole(v any, w Way) {
	body := Encode(v)
	half := body[:len(body)/2]
	switch w.Fault {
	case Cut, Silent, Endless:
		a.Header("Content-Length", strconv.Itoa(len(body)))
		a.send(http.StatusOK, "application/json", half)
		if w.Fault == Cut {
			a.cut()
		}
		a.silence()
	case Short, Malformed:
		body = half
	}
	a.send(http.StatusOK, "application/json", body)
}

// Stream sends events, with their fault.
func (a Answer) Stream(s Stream, w Way) {
	a.Header("Cache-Control", "no-cache")
	a.send(http.StatusOK, "text/event-stream; charset=utf-8", nil)
	for i, e := range s.Events {
		for w.Fault == Endless && i == s.Endless {
			a.event(e, max(w.StreamDelay, time.Millisecond)) // lets a reader keep up
		}
		if i == w.After && a.fault(s, w) {
			return
		}
		a.event(e, w.StreamDelay)
	}
	if w.After >= len(s.Events) {
		a.fault(s, w)
	}
}

// fault applies the fault at this point of the stream; done reports that the stream has ended.
func (a Answer) fault(s Stream, w Way) (done bool) {
	switch w.Fault {
	case Cut:
		a.cut()
	case Silent:
		a.silence()
	case Malformed:
		a.event(s.Malformed, 0)
	case ErrorEvent:
		a.event(s.Error, 0)
	}
	return w.Fault == Short || w.Fault == ErrorEvent
}

// event sends an event after the delay.
func (a Answer) event(e string, delay time.Duration) {
	a.pause(delay)
	a.push([]byte(e))
}

func (a Answer) send(status int, contentType string, body []byte) {
	a.Header("Content-Type", contentType)
	a.w.WriteHeader(status)
	a.push(body)
}

func (a Answer) push(b []byte) {
	_, err := a.w.Write(b)
	if err == nil {
		err = http.NewResponseController(a.w).Flush()
	}
	if err != nil {
		a.cut()
	}
}

func (a Answer) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-a.ctx.Done():
		a.cut()
	}
}

// silence keeps the connection open without sending.
func (a Answer) silence() {
	<-a.ctx.Done()
	a.cut()
}

// cut breaks the connection; it does not return.
func (a Answer) cut() { panic(http.ErrAbortHandler) }

// MaxPieces is the maximum number of parts of a text.
const MaxPieces = 5

// Pieces splits a text into a few parts, at boundaries of characters.
func Pieces(text string) (parts []string) {
	runes := []rune(text)
	for part := range slices.Chunk(runes, max(1, (len(runes)+MaxPieces-1)/MaxPieces)) {
		parts = append(parts, string(part))
	}
	return parts
}

// Encode returns JSON as the services write it: without HTML's escapes. A value that cannot be encoded is an error of
// the test and fails it.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("a reply that is no JSON: %v", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
