package native_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// TestOverload: before anything was done the caller begins anew, and the prompt is not said twice; afterwards it is waited for.
func TestOverload(t *testing.T) {
	s := newStage(t)
	s.api.Reply(anthropicapi.Reply{Status: 429, RetryAfter: "7"}, anthropicapi.Reply{Text: "hello"})
	_, err := s.run(engine.Request{Input: engine.Input{Prompt: "hi"}})
	var overloaded *engine.Overloaded
	if !errors.As(err, &overloaded) || overloaded.After != 7*time.Second {
		t.Fatal(err)
	}
	r := s.says(engine.Request{Input: engine.Input{Prompt: "hi"}, Session: engine.Session{ID: s.events[0].Session}}, "hello")
	same(t, s.conversation(r.Session), []string{"user text hi", "assistant text hello"})

	s.api.Reply(anthropicapi.Use("ping_user", nil), anthropicapi.Reply{Status: 529, RetryAfter: "3"}, anthropicapi.Reply{Fault: apiserver.Cut, After: 4, Text: "broken text"}, anthropicapi.Reply{Text: "done"})
	s.says(engine.Request{Input: engine.Input{Prompt: "go"}}, "done")
	if len(s.slept) != 2 || s.slept[0] != 3*time.Second {
		t.Errorf("slept %v", s.slept)
	}
	if len(s.tools.calls) != 1 {
		t.Errorf("calls %q", s.tools.calls)
	}
}

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestUnreached: a connection that fails is tried again, for half a minute. Who waits for an answer is notified of it at once, unless
// it fails in mid-turn.
func TestUnreached(t *testing.T) {
	silent := func(string) error { return nil }
	for name, row := range map[string]struct {
		request       engine.Request
		before, after int // how often it fails, before a tool was used and after
		want          error
		slept         int // pauses
	}{
		"for a moment":        {engine.Request{}, 0, 2, nil, 2},
		"for good":            {engine.Request{}, 0, 100, provider.ErrUnreached, 5},
		"at first":            {engine.Request{}, 5, 0, nil, 5},
		"never there":         {engine.Request{}, 100, 0, provider.ErrUnreached, 5},
		"somebody waits":      {engine.Request{Limits: engine.Limits{Patience: time.Hour}, Input: engine.Input{Awaited: true}}, 1, 0, provider.ErrUnreached, 0},
		"somebody reads":      {engine.Request{Input: engine.Input{Delta: silent, Awaited: true}}, 1, 0, provider.ErrUnreached, 0},
		"somebody reads on":   {engine.Request{Input: engine.Input{Delta: silent, Awaited: true}}, 0, 2, nil, 2},
		"somebody waits long": {engine.Request{Limits: engine.Limits{Patience: 5 * time.Second}, Input: engine.Input{Awaited: true}}, 0, 100, provider.ErrUnreached, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, down := newStage(t), row.before
			client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
				if down--; down >= 0 {
					return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				}
				return http.DefaultTransport.RoundTrip(r)
			})}
			s.Service.Provider = provider.NewAnthropic(provider.Options{BaseURL: s.api.URL(), Key: "test-key", Client: client})
			s.tools.on = func(string) *engine.ToolResult { down = row.after; return nil }
			s.api.Reply(anthropicapi.Use("ping_user", nil), anthropicapi.Reply{Text: "done"})
			row.request.Input.Prompt = "go"
			_, err := s.run(row.request)
			pauses := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}
			if !errors.Is(err, row.want) || !slices.Equal(s.slept, pauses[:row.slept]) {
				t.Errorf("slept %v, %v", s.slept, err)
			}
		})
	}
}

// TestFreeOfCharge: a turn that was refused says that it cost nothing, once; of an answer that broke off nobody knows.
func TestFreeOfCharge(t *testing.T) {
	cut := anthropicapi.Reply{Fault: apiserver.Cut}
	for name, row := range map[string]struct {
		replies []anthropicapi.Reply
		want    int // usage events without a usage
	}{
		"refused":       {[]anthropicapi.Reply{{Status: 401}}, 1},
		"overloaded":    {[]anthropicapi.Reply{{Status: 503}}, 1},
		"answered":      {[]anthropicapi.Reply{{Text: "x"}}, 0},
		"cut off":       {[]anthropicapi.Reply{cut, cut, cut, cut}, 0},
		"cut, refused":  {[]anthropicapi.Reply{cut, {Status: 401}}, 0},
		"refused later": {[]anthropicapi.Reply{anthropicapi.Use("ping_user", nil), {Status: 401}}, 0},
	} {
		s := newStage(t)
		s.api.Reply(row.replies...)
		_, err := s.run(engine.Request{Input: engine.Input{Prompt: "x"}})
		free := 0
		for _, e := range s.events {
			if e.Type == runlog.UsageEvent && e.Usage == nil && e.Cost == 0 {
				free++
			}
		}
		if free != row.want || (err == nil) != (name == "answered") {
			t.Errorf("%s: %d, want %d; %v", name, free, row.want, err)
		}
	}
}

// TestCutForGood: an answer that breaks off again and again is asked for three times more.
func TestCutForGood(t *testing.T) {
	s := newStage(t)
	for range 6 {
		s.api.Reply(anthropicapi.Reply{Fault: apiserver.Cut, After: 4, Text: "broken text"})
	}
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "hi"}}); !errors.Is(err, provider.ErrCut) || len(s.slept) != 3 {
		t.Errorf("slept %v, %v", s.slept, err)
	}
}

// TestLimits: what was spent before counts, the limit itself is reached, and nobody gets more than 200 answers.
func TestLimits(t *testing.T) {
	const spent = 0.009
	for left, want := range map[float64]error{0.02: nil, 0.003: engine.ErrMaxCost, 0.0025: engine.ErrMaxCost} {
		s := newStage(t)
		use := anthropicapi.Use("ping_user", nil)
		use.Usage = anthropicapi.Usage{In: 1000, Out: 1000} // 0.003 USD
		s.api.Reply(use, anthropicapi.Reply{Text: "done"})
		if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "x"}, Limits: engine.Limits{MaxCost: spent + left, Spent: spent}}); !errors.Is(err, want) {
			t.Errorf("%v left: %v", left, err)
		}
		said := s.conversation(s.events[0].Session)
		if begun := said[2] != "user tool_result not started: the run had to end"; begun != (want == nil) || begun != (len(s.tools.calls) == 1) {
			t.Errorf("%v left: %q, %q", left, said, s.tools.calls)
		}
	}
	s := newStage(t)
	s.api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Use("ping_user", nil) })
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "x"}, Limits: engine.Limits{MaxTurns: 1000}, Model: engine.Model{Name: "endless"}}); !errors.Is(err, engine.ErrMaxTurns) || len(s.tools.calls) != 200 {
		t.Errorf("%d tool uses, %v", len(s.tools.calls), err)
	}
}

// TestStopped: of the tools that one answer asks for none is used behind a stop; what was not used is answered.
func TestStopped(t *testing.T) {
	s := newStage(t)
	ctx, stop := context.WithCancel(t.Context())
	s.tools.on = func(string) *engine.ToolResult { stop(); return nil }
	s.api.Reply(anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{ID: "a", Name: "ping_user"}, {ID: "b", Name: "ping_user"}}})
	_, err := s.Run(ctx, engine.Request{Input: engine.Input{Prompt: "x"}, Scope: engine.Scope{Root: "/work"}}, s.tools, s.sink)
	if !errors.Is(err, context.Canceled) || len(s.tools.calls) != 1 {
		t.Errorf("%q, %v", s.tools.calls, err)
	}
	if said := s.conversation(s.events[0].Session); len(said) != 5 || said[4] != "user tool_result not started: the run had to end" {
		t.Errorf("%q", said)
	}
}

// TestCutText: what somebody has seen of an answer that broke off is not said again; it stands in the transcript.
func TestCutText(t *testing.T) {
	s := newStage(t)
	s.api.Reply(anthropicapi.Reply{Fault: apiserver.Cut, After: 5, Text: strings.Repeat("some words ", 20)})
	var seen strings.Builder
	r, err := s.run(engine.Request{Input: engine.Input{Prompt: "hi", Delta: func(text string) error { seen.WriteString(text); return nil }}})
	if !errors.Is(err, provider.ErrCut) || seen.Len() == 0 || r.Text != seen.String() {
		t.Fatalf("%v, seen %q, said %q", err, seen.String(), r.Text)
	}
	s.api.Reply(anthropicapi.Reply{Text: "whole"})
	s.says(engine.Request{Input: engine.Input{Prompt: "go on"}, Session: engine.Session{ID: r.Session}}, "whole")
	// the same behind nobody's eyes: the caller begins the turn anew, and nothing of it stands there twice
	s.api.Reply(anthropicapi.Reply{Fault: apiserver.ErrorEvent, After: 5, Text: strings.Repeat("some words ", 20)})
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "again"}}); err == nil {
		t.Error("no overload")
	}
	s.api.Reply(anthropicapi.Reply{Text: "fine"})
	r = s.says(engine.Request{Input: engine.Input{Prompt: "again"}, Session: engine.Session{ID: s.events[0].Session}}, "fine")
	same(t, s.conversation(r.Session), []string{"user text again", "assistant text fine"})
	stop := errors.New("enough")
	s.api.Reply(anthropicapi.Reply{Text: strings.Repeat("some words ", 20)})
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "hi", Delta: func(string) error { return stop }}}); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// TestOverloadBehindText: nobody begins a turn anew whose text somebody has read.
func TestOverloadBehindText(t *testing.T) {
	s := newStage(t)
	s.api.Reply(anthropicapi.Reply{Fault: apiserver.ErrorEvent, After: 5, Text: strings.Repeat("some words ", 20)})
	var seen strings.Builder
	r, err := s.run(engine.Request{Input: engine.Input{Prompt: "hi", Delta: func(text string) error { seen.WriteString(text); return nil }}})
	var overloaded *engine.Overloaded
	if !errors.Is(err, provider.ErrCut) || errors.As(err, &overloaded) || seen.Len() == 0 || r.Text != seen.String() {
		t.Errorf("%v, seen %q, said %q", err, seen.String(), r.Text)
	}
}
