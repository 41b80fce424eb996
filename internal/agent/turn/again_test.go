package turn

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/channel"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// pastOf returns the recorded prompt of a run.
func pastOf(t *testing.T, r *run.Runner, record runlog.Record) prompt.Past {
	t.Helper()
	text, err := store.Read(r.Home.Run(record.ID, "prompt.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sections, err := prompt.SectionsOf(string(text), record.Parts)
	if err != nil {
		t.Fatal(err)
	}
	return prompt.Past{Sections: sections, Run: record.ID, Near: record.Started, Pings: record.AllowPing}
}

// recordedTurns take turns of all kinds.
func recordedTurns(t *testing.T) map[string]func(r *run.Runner) (runlog.Record, error) {
	t.Helper()
	name, err := channel.NewName("mine", "1")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(r *run.Runner) (runlog.Record, error){
		"main": func(r *run.Runner) (runlog.Record, error) {
			return Queue{r}.Chat(t.Context(), Message{Text: "hi"}, Options{Owner: true})
		},
		"typed": func(r *run.Runner) (runlog.Record, error) {
			return Queue{r}.Chat(t.Context(), Message{Tag: "button", Text: "hi"}, Options{Owner: true, Model: "haiku", Thinking: "high", Permissions: policy.AskOwner})
		},
		"fork": func(r *run.Runner) (runlog.Record, error) {
			return Forks{r}.Start(t.Context(), "tea", Options{Owner: true})
		},
		"fork of a message": func(r *run.Runner) (runlog.Record, error) {
			if _, err := (Forks{r}).Open(t.Context(), "tea"); err != nil {
				return runlog.Record{}, err
			}
			return Queue{r}.Chat(t.Context(), Message{Text: "Which?\n\nThe green one?"}, Options{Model: "haiku"})
		},
		"fork of a run": func(r *run.Runner) (runlog.Record, error) {
			if err := r.Sessions.OpenFork(t.Context(), session.Fork{ID: "f", Parent: "s", Run: "r", Quote: "The kettle boils.", Model: "sonnet"}); err != nil {
				return runlog.Record{}, err
			}
			return Queue{r}.Chat(t.Context(), Message{Text: "Which?"}, Options{Owner: true})
		},
		"report": func(r *run.Runner) (runlog.Record, error) {
			if _, err := (Forks{r}).Start(t.Context(), "tea", Options{Owner: true}); err != nil {
				return runlog.Record{}, err
			}
			return Forks{r}.Report(t.Context(), Options{Owner: true})
		},
		"reminder": func(r *run.Runner) (runlog.Record, error) {
			if err := r.Sessions.OpenFork(t.Context(), session.Fork{ID: "f", Session: "s", Turns: 1, Last: r.Disk.Now().Add(-time.Hour)}); err != nil {
				return runlog.Record{}, err
			}
			return Forks{r}.Nudge(t.Context(), Options{})
		},
		"question": func(r *run.Runner) (runlog.Record, error) {
			return New(r).Ask(t.Context(), Question{Text: "Why?", Root: t.TempDir(), Tools: []string{"Read(./**)"}, Dirs: []policy.Root{{Dir: t.TempDir(), Writable: true}}, More: "Be brief."}, Options{Input: "a\n\nb"})
		},
		"question with a system prompt": func(r *run.Runner) (runlog.Record, error) {
			return New(r).Ask(t.Context(), Question{Text: "Why?", System: "You are a poet."}, Options{Model: "haiku"})
		},
		"channel": func(r *run.Runner) (runlog.Record, error) {
			return New(r).ChatChannel(t.Context(), name, Message{Text: "hi"}, Options{Model: "haiku"})
		},
	}
}

// TestTurnAgain: a recorded turn would begin today as it began then, if no setting has changed since.
func TestTurnAgain(t *testing.T) {
	t.Parallel()
	for what, take := range recordedTurns(t) {
		a := &agent{}
		r := runtest.New(t, a)
		r.Settings.Main.Model, r.Settings.Main.Thinking, r.Settings.Main.Forks = "opus", "low", "off"
		r.Settings.Channel.AllowedTools = []string{"WebSearch"}
		record, err := take(r)
		if err != nil || record.ID == "" {
			t.Errorf("%s: %+v, %v", what, record, err)
			continue
		}
		then := a.asked[slices.IndexFunc(a.asked, func(r engine.Request) bool { return r.Run.ID == record.ID })]
		again, err := New(r).Again(record, pastOf(t, r, record), then.Input.System)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if text := again.Prompt.Text(); text != then.Input.Prompt {
			t.Errorf("%s: the prompt is\n%s, was\n%s", what, text, then.Input.Prompt)
		}
		now := again.Request
		if now.Input.System != then.Input.System || now.Model.Name != then.Model.Name || now.Model.Thinking != then.Model.Thinking || now.Scope.Root != then.Scope.Root ||
			len(now.Scope.Dirs) != len(then.Scope.Dirs) || strings.Join(now.Scope.Allow, " ") != strings.Join(then.Scope.Allow, " ") {
			t.Errorf("%s: the request is\n%+v, was\n%+v", what, now, then)
		}
		got := again.Record
		if got.Mode != record.Mode || got.Key != record.Key && record.Kind != kindChannel || got.Permissions != record.Permissions || got.Update != record.Update ||
			strings.Join(got.Tools, " ") != strings.Join(record.Tools, " ") || got.Foreground != record.Foreground {
			t.Errorf("%s: the record is\n%+v, was\n%+v", what, got, record)
		}
	}
}

// TestTurnAgainToday: a turn whose settings have changed since begins with those of today, except for what was typed.
func TestTurnAgainToday(t *testing.T) {
	t.Parallel()
	for _, typed := range []bool{false, true} {
		a := &agent{}
		r := runtest.New(t, a)
		r.Settings.Main.Model, r.Settings.Main.Thinking, r.Settings.Main.Forks = "opus", "low", "off"
		o := Options{Owner: true}
		if typed {
			o.Model, o.Thinking = "haiku", "high"
		}
		var records []runlog.Record
		for range 2 {
			record, err := Queue{r}.Chat(t.Context(), Message{Text: "hi"}, o)
			if records = append(records, record); err != nil || len(records) > 1 {
				continue
			}
			if _, err := (Forks{r}).Open(t.Context(), "tea"); err != nil {
				t.Fatal(err)
			}
		}
		r.Settings.Main.Model, r.Settings.Main.Thinking, r.Settings.Main.Forks = "opus 2", "medium", "none"
		for i, record := range records {
			again, err := New(r).Again(record, pastOf(t, r, record), "")
			model, thinking := "opus 2", []string{"medium", "none"}[i]
			if typed {
				model, thinking = "haiku", []string{"high", "none"}[i]
			}
			if got := again.Request.Model; err != nil || got.Name != model || got.Thinking != thinking {
				t.Errorf("typed %v, %d: %+v, %v", typed, i, got, err)
			}
		}
	}
}

// TestNoTurnAgain: a run of another kind is no turn, and what cannot be read today is an error.
func TestNoTurnAgain(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		record runlog.Record
		broken string
		want   error
	}{
		"routine":                  {runlog.Record{Subject: runlog.Subject{Kind: "routine"}}, "", ErrNoTurn},
		"compaction":               {runlog.Record{Subject: runlog.Subject{Kind: kindSession}, Key: session.MainKey}, "", ErrNoTurn},
		"main without its policy":  {runlog.Record{Subject: runlog.Subject{Kind: kindChat}, Key: session.MainKey}, "tool-policy.yaml", nil},
		"fork without its policy":  {runlog.Record{Subject: runlog.Subject{Kind: kindFork}, Key: session.ForkKey}, "tool-policy.yaml", nil},
		"channel without a prompt": {runlog.Record{Subject: runlog.Subject{Kind: kindChannel}}, "CHANNEL.md", nil},
	} {
		r := runtest.New(t, &agent{})
		if c.broken != "" {
			if err := os.Mkdir(r.Home.Path(c.broken), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		again, err := New(r).Again(c.record, prompt.Past{}, "")
		if err == nil || errors.Is(err, ErrNoTurn) != (c.want != nil) || again.Tools != nil {
			t.Errorf("%s: %+v, %v", what, again, err)
		}
	}
}
