package run_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

// planner is an engine of which only the plan matters.
type planner struct {
	*actor

	plan engine.Plan
	err  error
	got  *engine.Request
}

func (p planner) Plan(r engine.Request, _ engine.Tools) (engine.Plan, error) {
	*p.got = r
	return p.plan, p.err
}

// kept is a conversation with a history.
type kept struct {
	conversation.Isolated

	history conversation.History
}

func (k kept) Open(context.Context) (conversation.History, error) { return k.history, nil }

// TestPreview: a preview shows what Run would do, and why it would not; it changes nothing.
func TestPreview(t *testing.T) {
	t.Parallel()
	same := func(in prompt.Input) prompt.Input { return in }
	for name, c := range map[string]struct {
		change func(s *fixture, spec *run.Spec)
		plan   engine.Plan
		err    error
		want   string // session, branch, model, tools, refuses, refused
		prompt string // a part of it
	}{
		"new":      {plan: engine.Plan{Model: "m", Tools: []string{"WebSearch", "Bash"}}, want: "[] false m [WebSearch Bash] [Bash] []"},
		"no model": {plan: engine.Plan{}, want: "[] false asked [] [] []"},
		"continues": {change: func(_ *fixture, spec *run.Spec) {
			spec.Conversation = kept{history: conversation.History{Session: "s"}}
		}, want: "[s] false asked [] [] []"},
		"branches": {change: func(_ *fixture, spec *run.Spec) { spec.Conversation = kept{history: conversation.History{Parent: "p"}} }, want: "[p] true asked [] [] []"},
		"lost": {
			change: func(_ *fixture, spec *run.Spec) { spec.Conversation = kept{history: conversation.History{Parent: "p"}} },
			err:    fmt.Errorf("s: %w", engine.ErrSessionUnknown), want: "[] false asked [] [] []", prompt: "NOTE: Your earlier session is gone",
		},
		"no plan":   {err: errTest, want: "[] false asked [] [] [what the test wants]"},
		"no engine": {change: func(s *fixture, _ *run.Spec) { s.Engines = func(string) (engine.Engine, error) { return nil, errTest } }, want: "[] false asked [] [] [what the test wants]"},
		"not completed": {change: func(_ *fixture, spec *run.Spec) {
			spec.Origin = &caller{complete: func(*engine.Request) error { return errTest }}
		}, want: "[] false asked [] [] [what the test wants]"},
		"no skill": {change: func(_ *fixture, spec *run.Spec) { spec.Input.Task.Skills = []string{"none"} }, want: "[] false asked [] [] [no skill \"none\"]"},
		"plain":    {change: func(_ *fixture, spec *run.Spec) { spec.Plain = true }, want: "[] false  [] [] []", prompt: "Go."},
	} {
		var got engine.Request
		s, spec := newFixture(t, t.TempDir(), planner{plays(), c.plan, c.err, &got}), routine()
		spec.Engine.Model, spec.Policy.Tools = "asked", []string{"WebSearch"}
		if c.change != nil {
			c.change(s, &spec)
		}
		p, err := s.Preview(t.Context(), spec, same)
		said := fmt.Sprintf("[%s] %v %s %v %v [%s]", p.Session, p.Branch, p.Model, p.Tools, p.Refuses, p.Refused)
		if err != nil || !strings.HasPrefix(said, c.want) || !strings.Contains(p.Prompt, c.prompt) || p.Alone == spec.Plain {
			t.Errorf("%s: %s, want %s; alone %v, %v\n%s", name, said, c.want, p.Alone, err, p.Prompt)
		}
		if got.Run.Locks != nil || got.Limits.Raise != nil {
			t.Errorf("%s: locks or money are taken", name)
		}
		for r := range s.Runs.List() {
			t.Errorf("%s: %s is left", name, r.ID)
		}
	}
}

// TestPreviewFails: what cannot be read is an error of the preview.
func TestPreviewFails(t *testing.T) {
	t.Parallel()
	s := newFixture(t, t.TempDir(), plays())
	for name, change := range map[string]func(*run.Spec){
		"conversation": func(spec *run.Spec) { spec.Conversation = closed{opened: new(int), from: 1} },
		"its updates":  func(spec *run.Spec) { spec.Conversation = closed{opened: new(int), from: 2} },
		"a file": func(spec *run.Spec) {
			spec.Input.Piped.Files = []engine.Attachment{{Name: "x", Type: "text/plain", Path: s.Home.Path("none")}}
		},
	} {
		spec := routine()
		change(&spec)
		if p, err := s.Preview(t.Context(), spec, func(in prompt.Input) prompt.Input { return in }); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestRebuildFails: what cannot be read, or what the origin refuses, is an error of a rebuilt run. Its rights are those of today.
func TestRebuildFails(t *testing.T) {
	t.Parallel()
	s := newFixture(t, t.TempDir(), plays())
	for name, c := range map[string]struct {
		change func(*run.Spec)
		fails  bool
	}{
		"nothing": {func(*run.Spec) {}, false},
		"a file": {func(spec *run.Spec) {
			spec.Input.Piped.Files = []engine.Attachment{{Name: "x", Type: "text/plain", Path: s.Home.Path("none")}}
		}, true},
		"the origin": {func(spec *run.Spec) { spec.Origin = &caller{complete: func(*engine.Request) error { return errTest }} }, true},
	} {
		spec := routine()
		spec.Policy.Dirs = []policy.Root{{Dir: "/a", Writable: true}}
		c.change(&spec)
		a, err := run.Rebuild(s.Runner, spec, runlog.Record{Started: s.now, MayAsk: true, Dirs: []string{"/b"}}, prompt.Past{})
		if (err != nil) != c.fails || !c.fails && (!slices.Equal(a.Record.Dirs, []string{"rw:/a"}) || a.Record.MayAsk || a.Tools == nil || !strings.Contains(a.Prompt.Text(), "Go.")) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// TestAskOwner: the owner is asked about each use once, and the answer is noted; without an answer nothing is. What cannot be read is a
// warning.
func TestAskOwner(t *testing.T) {
	t.Parallel()
	for _, allows := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var asked []string
			e := plays()
			e.run = func(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) error {
				err := sink(runlog.Event{Type: runlog.Asked, Tool: "Bash", ToolID: "1", Text: "Bash(x)"})
				time.Sleep(3 * time.Second)
				err = errors.Join(err, sink(runlog.Event{Type: runlog.Asked, Tool: "Bash", ToolID: "2"}))
				time.Sleep(3 * time.Second)
				return err
			}
			s, spec := newFixture(t, t.TempDir(), e), routine()
			spec.Policy.Mode = policy.AskOwner
			spec.Observe.Permit = func(ctx context.Context, use runlog.Event) bool {
				asked = append(asked, use.ToolID)
				if use.ToolID == "2" {
					<-ctx.Done() // no answer
				}
				return allows
			}
			got, err := s.Run(t.Context(), spec)
			if err != nil || !got.MayAsk || !slices.Equal(asked, []string{"1", "2"}) {
				t.Errorf("asked %q, %v", asked, err)
			}
			r, err := s.Runs.At(got.ID)
			if err != nil {
				t.Fatal(err)
			}
			if allowed, answered, err := r.Answer("1"); allowed != allows || !answered || err != nil {
				t.Errorf("1: %v, answered %v, %v", allowed, answered, err)
			}
			if _, answered, err := r.Answer("2"); answered || err != nil {
				t.Errorf("2: answered %v, %v", answered, err)
			}
		})
	}
}

// TestAskOwnerFails: where the events cannot be read, a warning says so at each look.
func TestAskOwnerFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, spec := newFixture(t, t.TempDir(), plays()), routine()
		spec.Policy.Mode, spec.Observe.Permit = policy.AskOwner, func(context.Context, runlog.Event) bool { return true }
		s.begin(t, spec)
		defer s.begun.Release()
		if err := os.Mkdir(s.Home.Run(s.begun.Run().ID, "events.jsonl"), 0o700); err != nil {
			t.Fatal(err)
		}
		stop := s.begun.AskOwner(t.Context())
		synctest.Wait()
		stop()
		if len(s.warned) != 1 {
			t.Errorf("warned %q", s.warned)
		}
	})
}
