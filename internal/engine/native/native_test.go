package native_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// stage is an engine before a server of the model's API, and what it reported of its latest turn.
type stage struct {
	*native.Engine
	t      *testing.T
	api    *anthropicapi.Server
	slept  []time.Duration
	events []runlog.Event
	tools  *agentTools
	own    *ownTools
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, api: anthropicapi.New(t), tools: &agentTools{}, own: &ownTools{}}
	table, err := model.Known().With([]string{"tiny window=4000 output=1000 in=1 out=2 cache-read=0 cache-write=0", "unpriced window=4000"})
	if err != nil {
		t.Fatal(err)
	}
	s.Engine = &native.Engine{
		Sessions: transcript.Dir(t.TempDir()),
		Service:  native.Service{Provider: provider.NewAnthropic(provider.Options{BaseURL: s.api.URL(), Key: "test-key"}), Name: "anthropic"},
		Model:    "tiny", Models: table, Now: func() time.Time { return time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC) },
		Random: rand.New(rand.NewSource(1)),
		Sleep: func(ctx context.Context, d time.Duration) error {
			s.slept = append(s.slept, d)
			return ctx.Err()
		},
		Tools: func(engine.Request) native.BuiltIns { return s.own },
	}
	return s
}

func (s *stage) sink(e runlog.Event) error {
	s.events = append(s.events, e)
	return nil
}

func (s *stage) run(r engine.Request) (engine.Result, error) {
	s.events = nil
	r.Scope.Root, r.Run.ID = cmp.Or(r.Scope.Root, "/work"), cmp.Or(r.Run.ID, "r-1")
	return s.Run(s.t.Context(), r, s.tools, s.sink)
}

// says runs a turn and wants its final text.
func (s *stage) says(r engine.Request, want string) engine.Result {
	s.t.Helper()
	result, err := s.run(r)
	if err != nil || result.Text != want {
		s.t.Fatalf("%+v: said %q, %v, want %q", r, result.Text, err, want)
	}
	return result
}

// reported is the latest turn's events without the requests, each a type and what it says.
func (s *stage) reported() (all []string) {
	for _, e := range s.events {
		if e.Type == runlog.Request {
			continue
		}
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Type, e.Tool, e.Text)))
	}
	return all
}

// conversation is what a session's transcript holds, a line for each block.
func (s *stage) conversation(id string) (all []string) {
	s.t.Helper()
	t, err := s.Sessions.Find(id)
	if err != nil {
		s.t.Fatal(err)
	}
	entries, err := t.Load(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		for _, b := range e.Message.Content {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s%s%s%s", e.Message.Role, b.Type, b.Text, b.Thinking, b.Name, b.Content)))
		}
	}
	return all
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// agentTools are the toolbox.
type agentTools struct {
	engine.Tools
	calls  []string
	within []string                        // names of subagents
	refuse string                          // a tool of the engine's own, by name
	on     func(string) *engine.ToolResult // may answer instead
}

func (*agentTools) List() []engine.Tool {
	object := json.RawMessage(`{"type":"object"}`)
	return []engine.Tool{{Name: "ping_user", Description: "Ping.", Schema: object}, {Name: "compact_session", Description: "Compact.", Schema: object, Effect: engine.Compacts}}
}

func (a *agentTools) Call(_ context.Context, name string, input json.RawMessage) engine.ToolResult {
	a.calls = append(a.calls, name+" "+string(input))
	if a.on != nil {
		if r := a.on(name); r != nil {
			return *r
		}
	}
	return engine.ToolResult{Text: "done " + name}
}

func (a *agentTools) Verdict(_ context.Context, tool, _ string, _ json.RawMessage) (string, error) {
	if tool == a.refuse {
		return "not here", nil
	}
	return "", nil
}

// ownTools are the engine's.
type ownTools struct{ calls []string }

func (*ownTools) List(names []string) (list []engine.Tool) {
	for _, name := range []string{"Read", "Write"} {
		if slices.Contains(names, name) {
			list = append(list, engine.Tool{Name: name, Description: name + ".", Schema: json.RawMessage(`{"type":"object"}`)})
		}
	}
	return list
}

func (o *ownTools) Call(_ context.Context, name string, input json.RawMessage) engine.ToolResult {
	o.calls = append(o.calls, name+" "+string(input))
	return engine.ToolResult{Text: "own " + name}
}

func TestTurn(t *testing.T) {
	s := newStage(t)
	s.api.Reply(anthropicapi.Reply{Thinking: "hm", Text: "hello", Usage: anthropicapi.Usage{In: 1000, Out: 500}})
	r := s.says(engine.Request{Input: engine.Input{Prompt: "hi", System: "be brief"}}, "hello")
	if !strings.HasPrefix(r.Session, "n-") || len(r.Session) != 14 || r.Usage.In != 1000 || r.Cost != 0.002 {
		t.Errorf("%+v", r)
	}
	same(t, s.reported(), []string{"session", "thinking  hm", "text  hello", "usage", "result  hello"})
	same(t, s.conversation(r.Session), []string{"user text hi", "assistant thinking hm", "assistant text hello"})
	if q := s.api.Requests()[0]; q.System != "be brief" || q.Model != "tiny" || q.MaxTokens != 1000 {
		t.Errorf("%+v", q)
	}
	// the next turn goes on in the same session
	s.api.Reply(anthropicapi.Reply{Text: "again"})
	if next := s.says(engine.Request{Input: engine.Input{Prompt: "more"}, Session: engine.Session{ID: r.Session}}, "again"); next.Session != r.Session {
		t.Errorf("session %s", next.Session)
	}
	if q := s.api.Requests()[1]; !q.Has("hello") || q.LastUserText() != "more" {
		t.Error("the first turn is not in the second question")
	}
}

func TestTools(t *testing.T) {
	s := newStage(t)
	s.tools.refuse = "Write"
	s.api.Reply(anthropicapi.Reply{Text: "looking", ToolUses: []anthropicapi.ToolUse{
		{ID: "a", Name: "Read", Input: map[string]string{"file_path": "x"}}, {ID: "b", Name: "ping_user"},
		{ID: "c", Name: "Write"}, {ID: "d", Name: "Bash"},
	}}, anthropicapi.Reply{Text: "done"})
	r := s.says(engine.Request{Input: engine.Input{Prompt: "go"}, Scope: engine.Scope{BuiltIns: []string{"Read", "Write", "TodoWrite"}}}, "done")
	same(t, s.conversation(r.Session), []string{
		"user text go", "assistant text looking", "assistant tool_use Read", "assistant tool_use ping_user", "assistant tool_use Write", "assistant tool_use Bash",
		"user tool_result own Read", "user tool_result done ping_user", "user tool_result not here", "user tool_result there is no tool Bash here",
		"assistant text done",
	})
	same(t, s.reported(), []string{
		"session", "text  looking", "usage", "tool_use Read", "tool_result Read own Read", "tool_use ping_user", "tool_result ping_user done ping_user",
		"tool_use Write", "tool_result Write not here", "tool_use Bash", "tool_result Bash there is no tool Bash here",
		"text  done", "usage", "result  done",
	})
	same(t, s.own.calls, []string{`Read {"file_path":"x"}`})
	same(t, s.tools.calls, []string{"ping_user {}"})
	same(t, s.api.Requests()[0].ToolNames(), []string{"Read", "Write", "ping_user", "compact_session"})
	var isError []bool
	for _, b := range s.api.Requests()[1].ToolResults() {
		isError = append(isError, b.IsError)
	}
	if !slices.Equal(isError, []bool{false, false, true, true}) {
		t.Errorf("errors %v", isError)
	}
}

func TestFork(t *testing.T) {
	s := newStage(t)
	s.api.Reply(anthropicapi.Reply{Text: "one"}, anthropicapi.Reply{Text: "two"})
	main := s.says(engine.Request{Input: engine.Input{Prompt: "a"}}, "one")
	fork := s.says(engine.Request{Input: engine.Input{Prompt: "b"}, Session: engine.Session{ID: main.Session, Fork: true}}, "two")
	same(t, s.conversation(main.Session), []string{"user text a", "assistant text one"})
	same(t, s.conversation(fork.Session), []string{"user text a", "assistant text one", "user text b", "assistant text two"})
	if s.events[0].Parent != main.Session {
		t.Errorf("%+v", s.events[0])
	}
}

func TestSessionErrors(t *testing.T) {
	s := newStage(t)
	for id, want := range map[string]error{
		"n-000000000000": engine.ErrSessionUnknown, "s-1": engine.ErrForeignSession, "dcf1a6ce-8b9f-4c0a-9a2b-000000000000": engine.ErrForeignSession,
	} {
		if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "x"}, Session: engine.Session{ID: id}}); !errors.Is(err, want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "x"}, Model: engine.Model{Name: "unpriced"}, Limits: engine.Limits{MaxCost: 1}}); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "in=USD") {
		t.Error(err)
	}
}

// TestThoughts: those of earlier turns are not sent again; what the service does not take is asked for without.
func TestThoughts(t *testing.T) {
	s := newStage(t)
	s.api.Reply(anthropicapi.Reply{Thinking: "hm", ToolUses: []anthropicapi.ToolUse{{Name: "ping_user"}}}, anthropicapi.Reply{Thinking: "aha", Text: "one"})
	r := s.says(engine.Request{Input: engine.Input{Prompt: "a"}}, "one")
	if !s.api.Requests()[1].Has("hm") {
		t.Error("a thought of this turn was not sent")
	}
	s.api.Reply(anthropicapi.Reply{Status: 400, Message: "messages.1.content.0: Invalid signature in thinking block"}, anthropicapi.Reply{Text: "two"})
	s.says(engine.Request{Input: engine.Input{Prompt: "b"}, Session: engine.Session{ID: r.Session}, Model: engine.Model{Thinking: "adaptive"}}, "two")
	requests := s.api.Requests()
	if first := requests[2]; first.Has("aha") || first.Has("hm") {
		t.Errorf("thoughts of an earlier turn were sent: %s", first.Raw)
	}
	if last := requests[len(requests)-1]; last.Has("aha") || last.Has("hm") || len(last.Thinking) > 0 {
		t.Errorf("thoughts were sent: %s", last.Raw)
	}
	same(t, s.conversation(r.Session), []string{
		"user text a", "assistant thinking hm", "assistant tool_use ping_user", "user tool_result done ping_user",
		"assistant thinking aha", "assistant text one", "user text b", "assistant text two",
	})
}

// TestDiscard: no transcript is left, also where the turn was begun anew.
func TestDiscard(t *testing.T) {
	s := newStage(t)
	s.api.Reply(anthropicapi.Reply{Status: 529}, anthropicapi.Reply{Text: "once"})
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "a"}, Session: engine.Session{Discard: true}}); err == nil {
		t.Error("no overload")
	}
	s.says(engine.Request{Input: engine.Input{Prompt: "a"}, Session: engine.Session{Discard: true}}, "once")
	if list, _, err := s.Sessions.List("", nil); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
}

// TestTwoAtOnce: who continues with a session waits for who is at it, and sees what it said.
func TestTwoAtOnce(t *testing.T) {
	s := newStage(t)
	s.api.Reply(anthropicapi.Reply{Text: "one"})
	r := s.says(engine.Request{Input: engine.Input{Prompt: "a"}}, "one")
	hold := make(chan struct{})
	s.api.Reply(anthropicapi.Reply{Text: "two", Hold: hold}, anthropicapi.Reply{Text: "three"})
	done := make(chan error, 2)
	turn := func(prompt string) {
		_, err := s.Run(t.Context(), engine.Request{Input: engine.Input{Prompt: prompt}, Session: engine.Session{ID: r.Session}, Scope: engine.Scope{Root: "/work"}}, s.tools, func(runlog.Event) error { return nil })
		done <- err
	}
	go turn("b")
	s.api.WaitRequests(2, 5*time.Minute)
	go turn("c")
	time.Sleep(50 * time.Millisecond) // in which a turn that did not wait would ask
	if n := len(s.api.Requests()); n != 2 {
		t.Errorf("%d requests while the first turn is under way", n)
	}
	close(hold)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	same(t, s.conversation(r.Session), []string{
		"user text a", "assistant text one", "user text b", "assistant text two", "user text c", "assistant text three",
	})
}

func TestEndings(t *testing.T) {
	for name, tc := range map[string]struct {
		reply anthropicapi.Reply
		r     engine.Request
		want  string
	}{
		"max tokens": {anthropicapi.Reply{Text: "half", StopReason: "max_tokens"}, engine.Request{}, "cut at its token limit"},
		"refusal":    {anthropicapi.Reply{StopReason: "refusal"}, engine.Request{}, "refused"},
		"key":        {anthropicapi.Reply{Status: 401}, engine.Request{}, "key"},
		"bad":        {anthropicapi.Reply{Status: 400, Message: "no such field"}, engine.Request{}, "no such field"},
		"garbled":    {anthropicapi.Reply{Fault: apiserver.WrongContentType}, engine.Request{}, "html"},
		"turns":      {anthropicapi.Use("ping_user", nil), engine.Request{Limits: engine.Limits{MaxTurns: 1}}, engine.ErrMaxTurns.Error()},
		"cost":       {anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{Name: "ping_user"}}, Usage: anthropicapi.Usage{In: 1000, Out: 1}}, engine.Request{Limits: engine.Limits{MaxCost: 0.0005}}, engine.ErrMaxCost.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.api.Reply(tc.reply)
			tc.r.Input.Prompt = "hi"
			if _, err := s.run(tc.r); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %s", err, tc.want)
			}
			s.api.Reply(anthropicapi.Reply{Text: "fine"})
			s.says(engine.Request{Input: engine.Input{Prompt: "next"}, Session: engine.Session{ID: s.events[0].Session}}, "fine") // nothing is lost, and the API takes it
		})
	}
}

// TestKilled: whatever a kill has left of a turn, the next one goes on, and no tool is used again.
func TestKilled(t *testing.T) {
	s := newStage(t)
	uses := []anthropicapi.ToolUse{{ID: "a", Name: "ping_user"}, {ID: "b", Name: "Read"}}
	s.api.Reply(anthropicapi.Reply{ToolUses: uses}, anthropicapi.Reply{Text: "done"})
	r := s.says(engine.Request{Input: engine.Input{Prompt: "go"}, Scope: engine.Scope{BuiltIns: []string{"Read"}}}, "done")
	file, err := s.Sessions.Find(r.Session)
	if err != nil {
		t.Fatal(err)
	}
	whole := read(t, file.Path)
	header := bytes.IndexByte(whole, '\n') + 1
	for at := header; at <= len(whole); at++ {
		write(t, file.Path, whole[:at])
		calls := len(s.tools.calls)
		s.api.Reply(anthropicapi.Reply{Text: "resumed"})
		s.says(engine.Request{Input: engine.Input{Prompt: "go on"}, Session: engine.Session{ID: r.Session}, Scope: engine.Scope{BuiltIns: []string{"Read"}}}, "resumed")
		if len(s.tools.calls) != calls {
			t.Fatalf("cut at %d: a tool was used again", at)
		}
		said := s.conversation(r.Session)
		if n := strings.Count(strings.Join(said, "\n"), "user text go on"); n != 1 {
			t.Fatalf("cut at %d: said %d times:\n%s", at, n, strings.Join(said, "\n"))
		}
	}
	if v := s.api.Violations(); len(v) > 0 {
		t.Error(v)
	}
}
