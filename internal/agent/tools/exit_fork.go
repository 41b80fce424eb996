package tools

import (
	"context"

	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

func callExitFork(ctx context.Context, b *Set, _ struct{}) (string, error) {
	if err := b.mayLeave(ctx); err != nil {
		return "", err
	}
	if saved, err := b.savesFork(); err != nil || saved {
		return "Not dropped: the fork becomes the main conversation when this turn ends, as save_context asked.", err
	}
	if err := b.Run.Event(ctx, runlog.Event{Type: runlog.ForkWish, Tool: runlog.ExitFork}); err != nil {
		return "", err
	}
	return "Noted: the fork is dropped when this turn ends.", nil
}

// savesFork reports whether the agent has asked for the fork to become the main conversation when its turn ends.
func (b *Set) savesFork() (bool, error) {
	standing, err := b.Run.Standing()
	return standing.LeaveFork == runlog.SaveContext, err
}

// inFork reports whether the run is a turn of the interactive fork.
func (b *Set) inFork() bool { return b.Run.Key == session.ForkKey }

// forkOnly is for a tool that ends the interactive fork.
func forkOnly(name string) func(*Set) error {
	return func(b *Set) error {
		if !b.inFork() {
			return &Refused{name + " is for an interactive fork only."}
		}
		return nil
	}
}

// mayLeave returns a *Refused if the owner has said nothing in the fork.
func (b *Set) mayLeave(ctx context.Context) error {
	f, open, err := b.Sessions.Fork(ctx)
	switch {
	case err != nil:
		return err
	case !open:
		return &Refused{"No interactive fork is open."}
	case f.Heard == 0:
		return &Refused{"The owner has said nothing in this fork yet: wait for their first message."}
	}
	return nil
}
