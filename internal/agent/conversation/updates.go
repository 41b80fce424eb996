package conversation

import (
	"context"
	"slices"

	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

// takeUpdates is what the agent is told of other runs: the main session uses them up, forks only look, an isolated run
// sees none.
func (t *Talk) takeUpdates(ctx context.Context) ([]update.Update, error) {
	if t.place.Mode != job.Foreground {
		return t.room.peek(ctx, t.place)
	}
	owner := update.Owner{Run: t.run.ID, Lock: t.room.lock(t.place)}
	claim, err := t.room.Updates.Pop(ctx, owner)
	if err != nil {
		return nil, err
	}
	t.claim = claim
	if len(claim.Updates) == 0 {
		return nil, nil
	}
	e := runlog.Event{Type: runlog.UpdatesPopped, Count: len(claim.Updates)}
	if t.room.Watch != nil {
		t.room.Watch(e)
	}
	return claim.Updates, t.run.Event(ctx, e)
}

func (r Room) peek(ctx context.Context, p Place) ([]update.Update, error) {
	if p.Mode == job.Isolated || p.Mode == job.Asked {
		return nil, nil
	}
	all, err := r.Updates.Peek(ctx)
	if err != nil || p.Mode != job.Persistent {
		return all, err
	}
	all = slices.DeleteFunc(all, func(u update.Update) bool { return !u.TS.After(p.Since) })
	reporters, err := r.Updates.Reporters(all)
	if err != nil {
		return nil, err
	}
	var fresh []update.Update
	for i, u := range all {
		if !p.Own(reporters[i]) {
			fresh = append(fresh, u)
		}
	}
	return fresh, nil
}

// settleUpdates decides what became of popped updates: once the agent began to answer it has read them.
func (t *Talk) settleUpdates(ctx context.Context) error {
	if t.claim == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // a run that was stopped still owes the updates their place
	standing, err := t.run.Standing()
	if err != nil {
		return err
	}
	if standing.Started {
		return t.claim.Deliver(ctx)
	}
	return t.claim.Return(ctx)
}
