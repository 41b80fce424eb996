package tools

import (
	"context"
	"errors"
	"strings"

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
func inFork(r *runlog.Run) bool { return r.Key == session.ForkKey }

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

func callEnterFork(ctx context.Context, b *Set, in struct {
	Topic string `json:"topic"`
}) (string, error) {
	_, open, err := b.Sessions.Fork(ctx)
	if err != nil {
		return "", err
	}
	if open {
		return "", &Refused{"An interactive fork is already open."}
	}
	wish := runlog.Event{Type: runlog.ForkWish, Tool: runlog.EnterFork, Text: strings.TrimSpace(in.Topic)}
	if err := b.Run.Event(ctx, wish); err != nil {
		return "", err
	}
	return "Noted: the interactive fork opens when this turn ends. End the turn now, and go on with the topic there.", nil
}

func callSaveContext(ctx context.Context, b *Set, _ struct{}) (string, error) {
	if err := b.mayLeave(ctx); err != nil {
		return "", err
	}
	f, _, err := b.Sessions.Fork(ctx)
	if err != nil {
		return "", err
	}
	f.Turns++ // this turn will have ended
	err = b.Sessions.Savable(f)
	if errors.Is(err, session.ErrMainMoved) || errors.Is(err, session.ErrResumed) || errors.Is(err, session.ErrNoTurn) {
		return "", &Refused{"Not possible: " + err.Error() + ". Use `report_updates` instead."}
	}
	if err != nil {
		return "", err
	}
	if err := b.Run.Event(ctx, runlog.Event{Type: runlog.ForkWish, Tool: runlog.SaveContext}); err != nil {
		return "", err
	}
	return "Noted: the fork becomes the main conversation when this turn ends.", nil
}
