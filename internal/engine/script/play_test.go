package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/script"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/state/runlog"
)

// stage is an engine in a new directory, what it slept and what it reported of its latest turn.
type stage struct {
	*script.Engine
	t      *testing.T
	slept  []time.Duration
	events []runlog.Event
	tools  tools
}

func newStage(t *testing.T, play string) *stage {
	t.Helper()
	s := &stage{t: t}
	file := filepath.Join(t.TempDir(), "play.yaml")
	if err := os.WriteFile(file, []byte(play), 0o600); err != nil {
		t.Fatal(err)
	}
	parsed, err := script.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Engine = &script.Engine{
		Home: paths.Dir(t.TempDir()), Script: parsed,
		Now: func() time.Time { return time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC) },
		Sleep: func(ctx context.Context, d time.Duration) error {
			s.slept = append(s.slept, d)
			return ctx.Err()
		},
	}
	return s
}

func (s *stage) sink(e runlog.Event) error {
	s.events = append(s.events, e)
	return nil
}

func (s *stage) run(r engine.Request) (engine.Result, error) {
	s.events = nil
	return s.Run(context.Background(), r, &s.tools, s.sink)
}

// says plays a turn and wants its final text.
func (s *stage) says(r engine.Request, want string) engine.Result {
	s.t.Helper()
	result, err := s.run(r)
	if err != nil || result.Text != want {
		s.t.Errorf("%+v: said %q, %v, want %q", r, result.Text, err, want)
	}
	return result
}

// reported is the latest turn's events, each a type and what it says.
func (s *stage) reported() (all []string) {
	for _, e := range s.events {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s", e.Type, e.Text)))
	}
	return all
}

// tools notes its calls; it knows every tool but "broken".
type tools struct {
	engine.Tools

	calls []string
}

func (*tools) List() []engine.Tool { return nil }

func (c *tools) Call(_ context.Context, name string, input json.RawMessage) engine.ToolResult {
	c.calls = append(c.calls, name+" "+string(input))
	if name == "broken" {
		return engine.ToolResult{Text: "no such tool", IsError: true}
	}
	return engine.ToolResult{Text: "done"}
}

func (*tools) Verdict(context.Context, string, string, json.RawMessage) (string, error) {
	return "", nil
}

const fourTurns = "turns:\n  - - text: one\n  - - text: two\n  - - text: three\n  - - text: four\nsummary: short\n"

func TestTurnsCountOverResume(t *testing.T) {
	s := newStage(t, fourTurns)
	first := s.says(engine.Request{Input: engine.Input{Prompt: "a"}}, "one")
	if want := []string{"session script engine, no model: turn 1", "text one", "usage", "result one"}; !slices.Equal(s.reported(), want) {
		t.Errorf("reported %q", s.reported())
	}
	if s.events[0].Session != first.Session || s.events[0].Parent != "" {
		t.Errorf("session event %+v", s.events[0])
	}
	for _, want := range []string{"two", "three", "four", "four", "four"} {
		if again := s.says(engine.Request{Input: engine.Input{Prompt: "b"}, Session: engine.Session{ID: first.Session}}, want); again.Session != first.Session {
			t.Errorf("resumed as %s", again.Session)
		}
	}
	if other := s.says(engine.Request{Input: engine.Input{Prompt: "a"}}, "one"); other.Session == first.Session {
		t.Error("two sessions of one id")
	}
}

func TestTurnsCountOverForks(t *testing.T) {
	s := newStage(t, fourTurns)
	main := s.says(engine.Request{Input: engine.Input{Prompt: "a"}}, "one")
	fork := s.says(engine.Request{Input: engine.Input{Prompt: "b"}, Session: engine.Session{ID: main.Session, Fork: true}}, "two")
	if fork.Session == main.Session || s.events[0].Session != fork.Session || s.events[0].Parent != main.Session {
		t.Errorf("fork %s of %s, event %+v", fork.Session, main.Session, s.events[0])
	}
	s.says(engine.Request{Session: engine.Session{ID: main.Session}}, "two") // untouched by its branch
	s.says(engine.Request{Session: engine.Session{ID: fork.Session}}, "three")
	second := s.says(engine.Request{Session: engine.Session{ID: fork.Session, Fork: true}}, "four")
	if main.Usage.In >= second.Usage.In {
		t.Errorf("a branch of a branch has %d tokens of context, its beginning %d", second.Usage.In, main.Usage.In)
	}
	s.says(engine.Request{Session: engine.Session{ID: fork.Session}}, "four")
	s.says(engine.Request{Session: engine.Session{Fork: true}}, "one") // there is nothing to branch from
}

func TestTurnsCountOverCompaction(t *testing.T) {
	s := newStage(t, fourTurns)
	old := s.says(engine.Request{Input: engine.Input{Prompt: strings.Repeat("long ", 100)}}, "one").Session
	s.events = nil
	c, err := s.Compact(context.Background(), engine.Request{Session: engine.Session{ID: old}}, "keep", s.sink)
	if err != nil || c.Session == old || c.Summary != "short" || c.Before <= c.After || c.After == 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	want := runlog.Event{Type: runlog.Compacted, Session: c.Session, Parent: old, Text: "short", Before: c.Before, After: c.After}
	if len(s.events) != 1 || fmt.Sprint(s.events[0]) != fmt.Sprint(want) {
		t.Errorf("reported %+v", s.events)
	}
	s.says(engine.Request{Session: engine.Session{ID: c.Session}}, "two")
	s.says(engine.Request{Session: engine.Session{ID: c.Session, Fork: true}}, "three")
	s.says(engine.Request{Session: engine.Session{ID: old}}, "two") // the old one stays as it is
	c, err = s.Compact(context.Background(), engine.Request{Session: engine.Session{ID: c.Session}}, "keep", s.sink)
	if err != nil {
		t.Fatal(err)
	}
	s.says(engine.Request{Session: engine.Session{ID: c.Session}}, "three")
}

func TestCompactionQuotesInstructions(t *testing.T) {
	s := newStage(t, "turns: [[{text: one}]]")
	old := s.says(engine.Request{}, "one").Session
	c, err := s.Compact(context.Background(), engine.Request{Session: engine.Session{ID: old}}, "keep the levels", s.sink)
	if err != nil || c.Summary != "Summary of 2 messages by these instructions: keep the levels" {
		t.Errorf("%+v, %v", c, err)
	}
	errFull := errors.New("full")
	if _, err := s.Compact(context.Background(), engine.Request{Session: engine.Session{ID: old}}, "", func(runlog.Event) error { return errFull }); !errors.Is(err, errFull) {
		t.Errorf("an error of the sink: %v", err)
	}
}

func TestCompactionInMidTurn(t *testing.T) {
	s := newStage(t, "turns:\n  - - text: before\n    - compact: keep\n    - text: after\n  - - text: two\nsummary: short\n")
	r := s.says(engine.Request{}, "after")
	if s.events[0].Session == r.Session || s.events[2].Type != runlog.Compacted || s.events[2].Session != r.Session || s.events[2].Parent != s.events[0].Session {
		t.Errorf("%+v", s.events)
	}
	s.says(engine.Request{Session: engine.Session{ID: r.Session}}, "two")
}

func TestNudgeIsNoTurn(t *testing.T) {
	s := newStage(t, fourTurns+"on-nudge:\n  - tool: report_updates\n  - text: sorry\n")
	id := s.says(engine.Request{}, "one").Session
	s.says(engine.Request{Session: engine.Session{ID: id}, Input: engine.Input{Nudge: true, Prompt: "report!"}}, "sorry")
	s.says(engine.Request{Session: engine.Session{ID: id}, Input: engine.Input{Nudge: true}}, "sorry")
	s.says(engine.Request{Session: engine.Session{ID: id}}, "two")
	s.says(engine.Request{Session: engine.Session{ID: id, Fork: true}}, "three")
	if len(s.tools.calls) != 2 {
		t.Errorf("calls %q", s.tools.calls)
	}
	s = newStage(t, fourTurns)
	s.says(engine.Request{Session: engine.Session{ID: ""}, Input: engine.Input{Nudge: true}}, "") // nothing is played when the script has nothing for it
}

func TestToolCalls(t *testing.T) {
	s := newStage(t, "turns:\n  - - tool: ping_user\n      input: {message: \"<a>\", n: 1}\n    - tool: broken\n    - text: end\n")
	s.says(engine.Request{}, "end")
	if want := []string{`ping_user {"message":"\u003ca\u003e","n":1}`, "broken {}"}; !slices.Equal(s.tools.calls, want) {
		t.Errorf("calls %q", s.tools.calls)
	}
	want := []string{"session script engine, no model: turn 1", "tool_use", "tool_result done", "tool_use", "tool_result no such tool", "text end", "usage", "result end"}
	if !slices.Equal(s.reported(), want) {
		t.Fatalf("reported %q", s.reported())
	}
	for i, pair := range [][]runlog.Event{s.events[1:3], s.events[3:5]} {
		use, result := pair[0], pair[1]
		if use.ToolID == "" || use.ToolID != result.ToolID || use.Tool != result.Tool || result.IsError != (i == 1) {
			t.Errorf("call %d: %+v, %+v", i, use, result)
		}
	}
	if s.events[1].ToolID == s.events[3].ToolID || string(s.events[3].Input) != "{}" {
		t.Errorf("%+v", s.events)
	}
}

func TestOverloaded(t *testing.T) {
	s := newStage(t, "turns:\n  - - text: begun\n    - overloaded: 529\n      times: 2\n      retry-after: 3s\n    - text: end\n  - - text: two\n")
	var id string
	for range 2 {
		result, err := s.run(engine.Request{Session: engine.Session{ID: id}})
		var refused *engine.Overloaded
		if !errors.As(err, &refused) || refused.After != 3*time.Second || refused.Reason != "529" {
			t.Fatalf("%v", err)
		}
		id = result.Session
	}
	s.says(engine.Request{Session: engine.Session{ID: id}}, "end") // the same turn, played anew
	s.says(engine.Request{Session: engine.Session{ID: id}}, "two")
	if text, err := os.ReadFile(filepath.Join(s.Home.ScriptSessions(), id+".jsonl")); strings.Count(string(text), "begun") != 1 || err != nil {
		t.Errorf("what was said before a refusal is kept: %v\n%s", err, text)
	}
}

func TestOverloadedForEver(t *testing.T) {
	s := newStage(t, "turns: [[{overloaded: busy}]]")
	for range 5 {
		var refused *engine.Overloaded
		if _, err := s.run(engine.Request{}); !errors.As(err, &refused) || refused.After != 0 {
			t.Fatalf("%v", err)
		}
	}
}

// Two steps that say the same are two refusals.
func TestOverloadedTwice(t *testing.T) {
	s := newStage(t, "turns: [[{overloaded: busy, times: 1}, {overloaded: busy, times: 1}, {text: end}]]")
	for range 2 {
		if _, err := s.run(engine.Request{}); err == nil {
			t.Fatal("not refused")
		}
	}
	s.says(engine.Request{}, "end")
}

// Once something had effects the turn is not played anew, so it counts.
func TestOverloadedAfterEffects(t *testing.T) {
	s := newStage(t, "turns:\n  - - tool: report_updates\n    - overloaded: 529\n  - - text: two\n")
	result, err := s.run(engine.Request{})
	if err == nil {
		t.Fatal("not refused")
	}
	s.says(engine.Request{Session: engine.Session{ID: result.Session}}, "two")
}

func TestMaxCost(t *testing.T) {
	s := newStage(t, "turns:\n  - - cost: 0.25\n    - text: half\n    - cost: 0.25\n    - text: end\n")
	result, err := s.run(engine.Request{Limits: engine.Limits{MaxCost: 0.5}})
	if !errors.Is(err, engine.ErrMaxCost) || result.Cost != 0.5 || result.Text != "half" || result.Session == "" {
		t.Errorf("%+v, %v", result, err)
	}
	total := 0.0
	for _, e := range s.events {
		total += e.Cost
	}
	if total != 0.5 {
		t.Errorf("reported %v USD", total)
	}
	for _, limit := range []float64{0, 0.51} {
		if result := s.says(engine.Request{Limits: engine.Limits{MaxCost: limit}}, "end"); result.Cost != 0.5 {
			t.Errorf("%+v", result)
		}
	}
}

func TestExpect(t *testing.T) {
	s := newStage(t, "turns: [[{expect: oil}, {text: end}]]")
	s.says(engine.Request{Input: engine.Input{Prompt: "the oil price"}}, "end")
	if _, err := s.run(engine.Request{Input: engine.Input{Prompt: "the gas price"}}); err == nil || err.Error() != `script: the prompt does not contain "oil"` {
		t.Errorf("%v", err)
	}
}

func TestDelay(t *testing.T) {
	s := newStage(t, "turns: [[{delay: 90s}, {text: end}]]")
	s.says(engine.Request{}, "end")
	if !slices.Equal(s.slept, []time.Duration{90 * time.Second}) {
		t.Errorf("slept %v", s.slept)
	}
	s = newStage(t, "turns: [[{text: half}, {delay: 90s}, {text: end}], [{text: two}]]")
	ctx, cancel := context.WithCancel(context.Background())
	s.Sleep = func(context.Context, time.Duration) error { cancel(); return ctx.Err() }
	result, err := s.Run(ctx, engine.Request{}, &s.tools, s.sink)
	if !errors.Is(err, context.Canceled) || result.Text != "half" {
		t.Errorf("%+v, %v", result, err)
	}
	if result, err = s.Run(ctx, engine.Request{}, &s.tools, s.sink); !errors.Is(err, context.Canceled) || result.Text != "" {
		t.Errorf("begun after the end: %+v, %v", result, err)
	}
}

func TestTouch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flag")
	s := newStage(t, fmt.Sprintf("turns: [[{touch: %q}, {text: end}]]", path))
	s.says(engine.Request{}, "end")
	if data, err := os.ReadFile(path); err != nil || len(data) > 0 {
		t.Errorf("%q, %v", data, err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.says(engine.Request{}, "end")
	if data, err := os.ReadFile(path); err != nil || string(data) != "mine" {
		t.Errorf("a file that was there: %q, %v", data, err)
	}
	s = newStage(t, fmt.Sprintf("turns: [[{touch: %q}]]", filepath.Join(path, "below")))
	if _, err := s.run(engine.Request{}); err == nil {
		t.Error("no error")
	}
}

func TestErrorOfTheSink(t *testing.T) {
	errFull := errors.New("disk full")
	for _, at := range []any{runlog.Session, runlog.Thinking, runlog.ToolUse, runlog.ToolResult, runlog.UsageEvent, runlog.Text, runlog.Compacted, runlog.Result} {
		s := newStage(t, "turns: [[{think: a}, {tool: b}, {compact: c}, {text: d}]]")
		after := 0
		_, err := s.Run(context.Background(), engine.Request{}, &s.tools, func(e runlog.Event) error {
			if e.Type == at || after > 0 {
				after++
				return errFull
			}
			return nil
		})
		if !errors.Is(err, errFull) || after != 1 {
			t.Errorf("%s: %v, %d events from then on", at, err, after)
		}
		if at == runlog.ToolUse && len(s.tools.calls) > 0 {
			t.Error("a call that was not recorded was made")
		}
	}
}
