package turn

import (
	"context"
	"errors"
	"testing"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/session"
)

// TestTypedLimit: a limit that the owner types counts above the configured ones, and another one does not.
func TestTypedLimit(t *testing.T) {
	t.Parallel()
	for owner, want := range map[bool]float64{true: 3, false: 1} {
		var asked []engine.Request
		r := runtest.New(t, runtest.Answering{Asked: &asked})
		if _, err := New(r).Ask(t.Context(), Question{Text: "Why?", Discard: true, MaxCost: 3}, Options{Owner: owner}); err != nil {
			t.Fatal(err)
		}
		if len(asked) != 1 || asked[0].Limits.MaxCost != want {
			t.Errorf("owner %v: asked %+v", owner, asked)
		}
	}
}

// TestSaveForkDuringATurn: while main is in a turn the fork cannot take its place.
func TestSaveForkDuringATurn(t *testing.T) {
	t.Parallel()
	var asked []engine.Request
	r := runtest.New(t, runtest.Answering{Asked: &asked})
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

// TestSignalDuringATurn: a message stays in the queue if a signal ends its turn, and is gone if the owner withdraws it.
func TestSignalDuringATurn(t *testing.T) {
	t.Parallel()
	for withdrawn, left := range map[bool]int{true: 0, false: 1} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := context.Canceled
		if withdrawn {
			cause = run.ErrWithdrawn
		}
		r := runtest.New(t, stoppable{stop: func() { cancel(cause) }})
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
