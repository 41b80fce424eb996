package fire

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit"
)

// TestForegroundFire: a routine of the main conversation has that conversation's model and thinking, and its answer is delivered
// with a line about the updates that it was shown.
func TestForegroundFire(t *testing.T) {
	t.Parallel()
	var asked []engine.Request
	var terminal bytes.Buffer
	r := runtest.New(t, runtest.Answering{Asked: &asked})
	r.Settings.Main.Thinking, r.Settings.Main.Model, r.Outbox.Terminal = "adaptive", "opus", &terminal
	if err := store.Replace(r.Home.Path("routines", "a.md"), []byte("---\nid: a\ncron: \"@yearly\"\n---\nGo.\n")); err != nil {
		t.Fatal(err)
	}
	if err := r.Updates.Add(t.Context(), "The kettle boils.", "x"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := New(r).Fire(t.Context(), "a", Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := terminal.String(); got != "done\n\n"+prompt.CatchingUp+"\nagain done\n" {
		t.Errorf("delivered %q", got)
	}
	for _, request := range asked {
		if request.Model.Thinking != "adaptive" || request.Model.Name != "opus" || request.Input.SystemOnly {
			t.Errorf("asked %+v", request)
		}
	}
}

// TestGateSaysWhy: a gate that exits with 1 holds the run back; if it also prints an error, it has failed.
func TestGateSaysWhy(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]runlog.Outcome{
		"exit 1": runlog.Gated, "echo broken >&2; exit 1": runlog.Failed, "exit 2": runlog.Failed, "echo news": runlog.OK,
	} {
		var prompts []string
		d := newFixture(t, runtest.Turn(func(r engine.Request) error { prompts = append(prompts, r.Input.Prompt); return nil }), time.Hour, "gate: check")
		err := errors.Join(os.MkdirAll(d.Home.Path("gates"), 0o700),
			testkit.WriteFile(d.Home.Gate("check"), []byte("#!/bin/sh\n"+script+"\n"), 0o700)) //nolint:gosec // it is executed
		if err != nil {
			t.Fatal(err)
		}
		d.approve()
		if r, _ := New(d.Runner).Fire(t.Context(), "a", Options{}); r.Outcome != want {
			t.Errorf("%s: %s, %s", script, r.Outcome, r.Error)
		}
		if ran := want == runlog.OK; ran != (len(prompts) == 1 && strings.Contains(prompts[0], "news")) {
			t.Errorf("%s: prompts %q", script, prompts)
		}
	}
}

// TestContinueWithoutAnAnswer: a run whose question has no answer yet does not go on.
func TestContinueWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	r := runtest.New(t, runtest.Answering{Asked: new([]engine.Request)})
	record, err := New(r).Fire(t.Context(), "a", Options{})
	if err != nil {
		t.Fatal(err)
	}
	began, err := r.Runs.At(record.ID)
	if err == nil {
		err = errors.Join(began.Finish(runlog.Waiting, ""), r.Questions.Ask(t.Context(), question.Question{
			Run: record.ID, Job: "a", Name: "a", Text: "Which?", Asked: r.Disk.Now(), Expires: r.Disk.Now().Add(continueWait),
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
	var closed *question.Closed
	if again, err := (Answers{r}).Continue(t.Context(), record.ID, run.Observer{}); !errors.As(err, &closed) || again.Outcome != runlog.Waiting {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestContinuedAndLost: a run that lost its file while it continued leaves the outcome of its slot to the process that closes it.
func TestContinuedAndLost(t *testing.T) {
	t.Parallel()
	var lose string // the file to remove in the next turn
	d := newFixture(t, runtest.Turn(func(engine.Request) error { return os.RemoveAll(lose) }), time.Minute)
	record := d.fires(Options{Trigger: Trigger{Scheduled: true}}, runlog.OK, true)
	began, err := d.Runs.At(record.ID)
	if err == nil {
		err = errors.Join(began.Finish(runlog.Waiting, ""), d.Slots.Settle("a", nine, record.ID, string(runlog.Waiting)),
			d.Questions.Ask(t.Context(), question.Question{
				Run: record.ID, Job: "a", Name: "a", Text: "Which?", Asked: d.now, Expires: d.now.Add(continueWait), Answer: "this",
			}))
	}
	if err != nil {
		t.Fatal(err)
	}
	lose = d.Home.RunLock(record.ID)
	if again, err := (Answers{d.Runner}).Continue(t.Context(), record.ID, run.Observer{}); !errors.Is(err, runlog.ErrClosed) || again.Done() {
		t.Errorf("%+v, %v", again, err)
	}
	if c, err := d.Slots.Load("a", nine); err != nil || c.Outcome != string(runlog.Waiting) {
		t.Errorf("%+v, %v", c, err)
	}
}
