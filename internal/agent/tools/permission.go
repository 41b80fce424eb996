package tools

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/runlog"
)

// AskPatience is how long a use of a tool waits for the owner's permission.
const AskPatience = 60 * time.Second

// AskEvery is how often the asking and the answering process look for each other's events. They may be different processes, because
// the hooks of the claude command are processes of their own.
const AskEvery = 100 * time.Millisecond

// permission decides a use that no pattern allows, by the run's permission mode. refusal is the reason for which the patterns refuse it.
func (b *Set) permission(ctx context.Context, p policy.Policy, refusal string, use runlog.Event) (reason string, err error) {
	mode := policy.Mode(b.Run.Permissions)
	if mode == "" {
		return refusal, nil
	}
	pattern, ok := p.Once(use.Tool, use.Input)
	switch {
	case !ok:
		return refusal, nil
	case mode == policy.AcceptEdits && policy.Edits(use.Tool):
		return "", nil
	case !b.Run.MayAsk:
		return refusal + "; the owner cannot be asked, because this turn has no terminal", nil
	}
	use.Text = pattern.String()
	if err := b.Run.Event(ctx, use); err != nil {
		return "", err
	}
	return b.awaitPermission(ctx, use)
}

func (b *Set) awaitPermission(ctx context.Context, use runlog.Event) (reason string, err error) {
	waiting, cancel := context.WithTimeout(ctx, AskPatience)
	defer cancel()
	look := time.NewTicker(AskEvery)
	defer look.Stop()
	for {
		allowed, answered, err := b.Run.Answer(use.ToolID)
		switch {
		case err != nil:
			return "", err
		case answered && allowed:
			return "", nil
		case answered:
			return use.Tool + ": the owner said no", nil
		}
		select {
		case <-look.C:
		case <-waiting.Done():
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			denied := runlog.Event{Type: runlog.Permitted, Tool: use.Tool, ToolID: use.ToolID, IsError: true}
			return use.Tool + ": the owner did not answer within a minute", b.Run.Event(ctx, denied)
		}
	}
}
