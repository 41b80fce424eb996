package tools

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

func callSaveContext(ctx context.Context, b *Set, _ struct{}) (string, error) {
	if err := b.mayLeave(ctx); err != nil {
		return "", err
	}
	f, _, err := b.Sessions.Fork(ctx)
	if err != nil {
		return "", err
	}
	f.Turns++ // this one will have ended
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
