package native_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

// onOpenAI puts the engine before a server of the other kind.
func (s *stage) onOpenAI() *openaiapi.Server {
	api := openaiapi.New(s.t)
	s.Service.Provider = provider.NewOpenAI(provider.Options{BaseURL: api.URL()})
	return api
}

// TestSilent: a turn in which nothing was said has failed, and the session goes on. Behind a tool the model may be silent.
func TestSilent(t *testing.T) {
	for want, replies := range map[string][]anthropicapi.Reply{
		"tiny gave an empty answer":        {{}, {Text: " \n"}, {StopReason: "tool_use"}},
		"tiny answered with thinking only": {{Thinking: "hm"}, {Thinking: "hm", Text: "\n"}},
	} {
		for _, reply := range replies {
			s := newStage(t)
			s.api.Reply(reply)
			if r, err := s.run(engine.Request{Input: engine.Input{Prompt: "hi"}}); (err == nil) != (reply.Thinking != "") {
				t.Errorf("%+v, and nobody waits: said %q, %v", reply, r.Text, err)
			}
			s.api.Reply(reply)
			if r, err := s.run(engine.Request{Input: engine.Input{Prompt: "hi", Awaited: true}, Limits: engine.Limits{Patience: time.Minute}}); err == nil || err.Error() != want {
				t.Errorf("%+v: said %q, %v", reply, r.Text, err)
			}
			s.api.Reply(anthropicapi.Use("ping_user", nil), reply)
			session := s.events[0].Session
			if r, err := s.run(engine.Request{Input: engine.Input{Prompt: "next"}, Session: engine.Session{ID: session}}); err != nil || strings.TrimSpace(r.Text) != "" {
				t.Errorf("%+v behind a tool: said %q, %v", reply, r.Text, err)
			}
			s.api.Reply(reply)
			if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "you owe a report", Nudge: true}, Session: engine.Session{ID: session}}); err != nil {
				t.Errorf("%+v to a nudge: %v", reply, err)
			}
			s.api.Reply(anthropicapi.Reply{Text: "fine"})
			s.says(engine.Request{Input: engine.Input{Prompt: "on"}, Session: engine.Session{ID: session}}, "fine")
			if v := s.api.Violations(); len(v) > 0 {
				t.Errorf("%+v: %q", reply, v)
			}
		}
	}
}

// TestSilentOpenAI: the same of the other kind, and a tool that is called in its old way is used.
func TestSilentOpenAI(t *testing.T) {
	s := newStage(t)
	api := s.onOpenAI()
	for want, reply := range map[string]openaiapi.Reply{
		"tiny gave an empty answer":        {},
		"tiny answered with thinking only": {Reasoning: "hm"},
	} {
		api.Reply(reply)
		if r, err := s.run(engine.Request{Input: engine.Input{Prompt: "hi", Awaited: true}, Limits: engine.Limits{Patience: time.Minute}}); err == nil || err.Error() != want {
			t.Errorf("%+v: said %q, %v", reply, r.Text, err)
		}
	}
	old := `{"choices":[{"index":0,"delta":{"function_call":{"name":"ping_user","arguments":"{}"}},"finish_reason":"function_call"}]}`
	api.Reply(openaiapi.Reply{Raw: []string{old, "[DONE]"}}, openaiapi.Reply{})
	s.says(engine.Request{Input: engine.Input{Prompt: "hi"}}, "")
	same(t, s.tools.calls, []string{"ping_user {}"})
	if v := api.Violations(); len(v) > 0 {
		t.Errorf("%q", v)
	}
}

// TestNoArguments: a tool is not run on what is no JSON object. The model is told so, and sees what it wrote.
func TestNoArguments(t *testing.T) {
	s := newStage(t)
	api := s.onOpenAI()
	api.Reply(openaiapi.Reply{ToolCalls: []openaiapi.ToolCall{
		{Name: "Read", Arguments: `{"file_path": "a.txt`}, {Name: "Read", Arguments: `["b.txt"]`}, {Name: "ping_user", Arguments: `"c"`},
		{Name: "compact_session", Arguments: `{"instructions`}, {Name: "Bash", Arguments: `[`},
		{Name: "Read", Arguments: `{"arguments":"d"}`}, {Name: "ping_user"},
	}}, openaiapi.Reply{Text: "done"})
	r := s.says(engine.Request{Input: engine.Input{Prompt: "go"}, Scope: engine.Scope{BuiltIns: []string{"Read"}}}, "done")
	const reported = "user tool_result the arguments are not a JSON object"
	same(t, s.conversation(r.Session)[8:], []string{
		reported, reported, reported, reported, "user tool_result there is no tool Bash here", "user tool_result own Read", "user tool_result done ping_user", "assistant text done",
	})
	same(t, s.own.calls, []string{`Read {"arguments":"d"}`})
	same(t, s.tools.calls, []string{"ping_user {}"})
	for _, written := range []string{"a.txt", "b.txt", `c`, `{\"instructions`} {
		if !api.Requests()[1].Has(written) {
			t.Errorf("%s is lost", written)
		}
	}
	if v := api.Violations(); len(v) > 0 {
		t.Errorf("%q", v)
	}
}

// TestFullWindow: an answer for which the window had no room is asked for again behind a compaction, once.
func TestFullWindow(t *testing.T) {
	s := newStage(t)
	old := s.grown()
	full := anthropicapi.Reply{Text: "half", StopReason: "model_context_window_exceeded", Usage: anthropicapi.Usage{Out: 500}}
	s.api.Reply(full, anthropicapi.Reply{Text: "the summary"}, anthropicapi.Reply{Text: "done"})
	r := s.says(engine.Request{Input: engine.Input{Prompt: "work"}, Session: engine.Session{ID: old.Session}}, "done")
	if r.Session == old.Session || r.Usage.Out < 500 || strings.Contains(strings.Join(s.conversation(r.Session), "\n"), "half") {
		t.Errorf("%+v: %q", r, s.conversation(r.Session))
	}
	s.api.Reply(full, anthropicapi.Reply{Text: "the summary"}, full)
	r, err := s.run(engine.Request{Input: engine.Input{Prompt: "work"}, Session: engine.Session{ID: old.Session}})
	if !errors.Is(err, provider.ErrTooLong) || strings.Contains(err.Error(), "max-tokens") || r.Text != "half" {
		t.Errorf("%+v, %v", r, err)
	}
	// what somebody has read is not begun anew
	s.api.Reply(full)
	r, err = s.run(engine.Request{Input: engine.Input{Prompt: "read", Delta: func(string) error { return nil }}, Session: engine.Session{ID: old.Session}})
	if !errors.Is(err, provider.ErrTooLong) || r.Session != old.Session || r.Text != "half" {
		t.Errorf("%+v, %v", r, err)
	}
	// a summary for which there is no room is asked for again, of less, and has its price
	s.api.Reply(full, anthropicapi.Reply{Text: "the summary"})
	before := s.cost()
	if _, err := s.Compact(t.Context(), engine.Request{Session: engine.Session{ID: old.Session}, Scope: engine.Scope{Root: "/work"}}, "x", s.sink); err != nil || s.cost() < before+0.001 {
		t.Errorf("%v, %v before, %v after", err, before, s.cost())
	}
}

// cost is that of the events.
func (s *stage) cost() (all float64) {
	for _, e := range s.events {
		all += e.Cost
	}
	return all
}
