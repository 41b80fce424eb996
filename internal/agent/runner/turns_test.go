package runner

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/testkit"
)

// TestTypedLimit: a limit that the owner types counts above the configured ones, and another one does not.
func TestTypedLimit(t *testing.T) {
	t.Parallel()
	for owner, want := range map[bool]float64{true: 3, false: 1} {
		var asked []engine.Request
		r := newRunner(t, answering{asked: &asked})
		if _, err := NewTurns(r).Ask(t.Context(), Question{Text: "Why?", Discard: true, MaxCost: 3}, Options{Owner: owner}); err != nil {
			t.Fatal(err)
		}
		if len(asked) != 1 || asked[0].Limits.MaxCost != want {
			t.Errorf("owner %v: asked %+v", owner, asked)
		}
	}
}

// TestForegroundFire: a routine of the main conversation has that conversation's model and thinking, and its answer is delivered
// with a line about the updates that it was shown.
func TestForegroundFire(t *testing.T) {
	t.Parallel()
	var asked []engine.Request
	var terminal bytes.Buffer
	r := newRunner(t, answering{asked: &asked})
	r.Settings.Main.Thinking, r.Settings.Main.Model, r.Outbox.Terminal = "adaptive", "opus", &terminal
	if err := store.Replace(r.Home.Path("routines", "a.md"), []byte("---\nid: a\ncron: \"@daily\"\n---\nGo.\n")); err != nil {
		t.Fatal(err)
	}
	if err := r.Updates.Add(t.Context(), "The kettle boils.", "x"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := NewFirer(r).Fire(t.Context(), "a", Options{}); err != nil {
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
		d := newDesk(t, turn(func(r engine.Request) error { prompts = append(prompts, r.Input.Prompt); return nil }), time.Hour, "gate: check")
		err := errors.Join(os.MkdirAll(d.Home.Path("gates"), 0o700),
			testkit.WriteFile(d.Home.Gate("check"), []byte("#!/bin/sh\n"+script+"\n"), 0o700)) //nolint:gosec // it is executed
		if err != nil {
			t.Fatal(err)
		}
		d.approve()
		if r, _ := NewFirer(d.Runner).Fire(t.Context(), "a", Options{}); r.Outcome != want {
			t.Errorf("%s: %s, %s", script, r.Outcome, r.Error)
		}
		if ran := want == runlog.OK; ran != (len(prompts) == 1 && strings.Contains(prompts[0], "news")) {
			t.Errorf("%s: prompts %q", script, prompts)
		}
	}
}

// TestSaveForkDuringATurn: while main is in a turn the fork cannot take its place.
func TestSaveForkDuringATurn(t *testing.T) {
	t.Parallel()
	var asked []engine.Request
	r := newRunner(t, answering{asked: &asked})
	if _, err := (Forks{r}).Start(t.Context(), "tea", Options{Owner: true}); err != nil {
		t.Fatal(err)
	}
	main, err := lock.TryGuard(r.Home.ConversationLock(session.MainKey))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Forks{r}).Save(t.Context()); !errors.Is(err, session.ErrMainMoved) {
		t.Errorf("during a turn: %v", err)
	}
	main.Release()
	if f, err := (Forks{r}).Save(t.Context()); err != nil || f.Topic != "tea" {
		t.Errorf("%+v, %v", f, err)
	}
	if id, err := r.Sessions.Main(); id != "s-1" || err != nil {
		t.Errorf("main is %q, %v", id, err)
	}
}

// TestContinueWithoutAnAnswer: a run whose question has no answer yet does not go on.
func TestContinueWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	r := newRunner(t, answering{asked: new([]engine.Request)})
	record, err := NewFirer(r).Fire(t.Context(), "a", Options{})
	if err != nil {
		t.Fatal(err)
	}
	run, err := r.Runs.At(record.ID)
	if err == nil {
		err = errors.Join(run.Finish(runlog.Waiting, ""), r.Questions.Ask(t.Context(), question.Question{
			Run: record.ID, Job: "a", Name: "a", Text: "Which?", Asked: r.Disk.Now(), Expires: r.Disk.Now().Add(continueWait),
		}))
	}
	if err != nil {
		t.Fatal(err)
	}
	var closed *question.Closed
	if again, err := (Answers{r}).Continue(t.Context(), record.ID, Observer{}); !errors.As(err, &closed) || again.Outcome != runlog.Waiting {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestSignalDuringATurn: a message stays in the queue if a signal ends its turn, and is gone if the owner withdraws it.
func TestSignalDuringATurn(t *testing.T) {
	t.Parallel()
	for withdrawn, left := range map[bool]int{true: 0, false: 1} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := context.Canceled
		if withdrawn {
			cause = ErrWithdrawn
		}
		r := newRunner(t, stoppable{stop: func() { cancel(cause) }})
		record, err := Queue{r}.Chat(ctx, Message{Text: "hi"}, Options{Owner: true})
		if err == nil || record.ID == "" {
			t.Errorf("withdrawn %v: %+v, %v", withdrawn, record, err)
		}
		contents, err := r.Queue.Contents()
		if n := len(contents.Waiting); n != left || err != nil {
			t.Errorf("withdrawn %v: %d wait, %v", withdrawn, n, err)
		}
	}
}
