package anthropicapi

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

func TestFaultsOfAStream(t *testing.T) {
	r := Reply{Text: "one two three"}
	for name, tc := range map[string]struct {
		fault apiserver.Fault
		after int
		names string // of the events that arrive
		err   error
	}{
		"cut at once":     {apiserver.Cut, 0, "", io.ErrUnexpectedEOF},
		"cut":             {apiserver.Cut, 1, "message_start", io.ErrUnexpectedEOF},
		"cut in content":  {apiserver.Cut, 4, "message_start content_block_start ping content_block_delta", io.ErrUnexpectedEOF},
		"cut at the end":  {apiserver.Cut, 99, "message_stop", io.ErrUnexpectedEOF},
		"short":           {apiserver.Short, 2, "message_start content_block_start", nil},
		"error at once":   {apiserver.ErrorEvent, 0, "error", nil},
		"error":           {apiserver.ErrorEvent, 1, "message_start error", nil},
		"error after all": {apiserver.ErrorEvent, 99, "message_stop error", nil},
		"malformed":       {apiserver.Malformed, 1, "message_start content_block_delta content_block_start", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(t)
			r := r
			r.Fault, r.After = tc.fault, tc.after
			s.Reply(r)
			list, err := reader(post(t, s, "/v1/messages", streamed(ask("hi"))).Body).all()
			got := names(list)
			if tc.fault == apiserver.Malformed || tc.after == 99 {
				if !strings.Contains(got, tc.names) {
					t.Errorf("got %s", got)
				}
			} else if got != tc.names {
				t.Errorf("got %s", got)
			}
			if !errors.Is(err, tc.err) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestErrorEvent(t *testing.T) {
	s := New(t)
	s.Reply(Reply{Fault: apiserver.ErrorEvent, After: 1, ErrorType: "api_error", Message: "m"})
	resp := post(t, s, "/v1/messages", streamed(ask("hi")))
	list, err := reader(resp.Body).all()
	want := `{"type":"error","error":{"type":"api_error","message":"m"},"request_id":"` + resp.Header.Get("Request-Id") + `"}`
	if err != nil || len(list) != 2 || list[1].data != want {
		t.Errorf("%v %v", list, err)
	}
}

func TestFaultsWithoutAResponse(t *testing.T) {
	s := New(t)
	s.Reply(Reply{Fault: apiserver.HangUp})
	if resp, err := try(t, s, "/v1/messages", streamed(ask("hi"))); !errors.Is(err, io.EOF) {
		t.Errorf("hang up: %v %v", resp, err)
	}
	s.Reply(Reply{Fault: apiserver.WrongContentType})
	if resp := post(t, s, "/v1/messages", streamed(ask("hi"))); resp.StatusCode != 200 || !strings.Contains(resp.text(t), "<h1>") {
		t.Errorf("page: %v", resp)
	}
}

func TestFaultsOfAWholeAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		fault apiserver.Fault
		err   error
	}{"cut": {apiserver.Cut, io.ErrUnexpectedEOF}, "short": {apiserver.Short, nil}, "malformed": {apiserver.Malformed, nil}} {
		t.Run(name, func(t *testing.T) {
			s := New(t)
			s.Reply(Reply{Text: "hello", Fault: tc.fault})
			b, err := io.ReadAll(post(t, s, "/v1/messages", ask("hi")).Body)
			if !errors.Is(err, tc.err) || !strings.HasPrefix(string(b), `{"id":`) || strings.HasSuffix(string(b), "}") {
				t.Errorf("%s %v", b, err)
			}
		})
	}
}

// Responses that never end keep neither the test nor the server from ending.
func TestResponsesThatNeverEnd(t *testing.T) {
	forever := make(chan struct{})
	for name, tc := range map[string]struct {
		reply    Reply
		streamed bool
		events   int // that arrive all the same
	}{
		"mute":         {Reply{Fault: apiserver.Mute}, true, -1},
		"held":         {Reply{Hold: forever}, true, -1},
		"slow":         {Reply{Delay: time.Hour}, false, -1},
		"silent":       {Reply{Text: "hello", Fault: apiserver.Silent, After: 4}, true, 4},
		"silent whole": {Reply{Text: "hello", Fault: apiserver.Silent}, false, 0},
		"slow events":  {Reply{Text: "hello", StreamDelay: time.Hour}, true, 0},
		"endless":      {Reply{Text: "la ", Fault: apiserver.Endless}, true, 50},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan error, 1)
			f := &fake{TB: t}
			f.run(func(tb testing.TB) {
				s := New(tb)
				s.Reply(tc.reply)
				body := ask("hi")
				if tc.streamed {
					body = streamed(body)
				}
				if tc.events < 0 {
					go func() {
						_, err := try(t, s, "/v1/messages", body)
						gone <- err
					}()
					s.WaitRequests(1, soon)
					return
				}
				events := reader(post(t, s, "/v1/messages", body).Body)
				for range tc.events {
					if _, err := events.next(); err != nil {
						t.Error(err)
					}
				}
				go func() {
					_, err := events.all()
					gone <- err
				}()
			})
			select {
			case err := <-gone:
				if err == nil {
					t.Error("the response ended properly")
				}
			case <-time.After(soon):
				t.Error("the connection stays open after the server's end")
			}
		})
	}
}

func TestDelays(t *testing.T) {
	s := New(t)
	hold := make(chan struct{})
	s.Reply(Reply{Hold: hold, Delay: 30 * time.Millisecond, StreamDelay: 10 * time.Millisecond, Text: "x"})
	start := time.Now()
	time.AfterFunc(30*time.Millisecond, func() { close(hold) })
	resp := post(t, s, "/v1/messages", streamed(ask("hi")))
	headers := time.Since(start)
	list, err := reader(resp.Body).all()
	if took := time.Since(start); err != nil || len(list) != 7 || headers < 60*time.Millisecond || took < 120*time.Millisecond {
		t.Errorf("headers after %s, all %d events after %s: %v", headers, len(list), took, err)
	}
}
