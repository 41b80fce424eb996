package conversation

import (
	"context"
	"slices"

	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

// takeUpdates returns the pending updates that the turn is shown. Popped ones are claimed until settleUpdates.
func (t *Turn) takeUpdates(ctx context.Context) ([]update.Update, error) {
	policy := t.conv.Updates()
	if policy.Show != pop {
		list, err := t.book.peek(ctx, policy)
		t.peeked = list
		return list, err
	}
	owner := update.Owner{Run: t.Run.ID, Lock: t.book.Home.ConversationLock(t.conv.Key())}
	claim, err := t.book.Updates.Pop(ctx, owner)
	if err != nil {
		return nil, err
	}
	t.claim = claim
	if len(claim.Updates) == 0 {
		return nil, nil
	}
	e := runlog.Event{Type: runlog.UpdatesPopped, Count: len(claim.Updates)}
	t.observe(e)
	return claim.Updates, t.Run.Event(ctx, e)
}

// peek returns the pending updates that a policy shows, without using them up.
func (b Book) peek(ctx context.Context, policy UpdatePolicy) ([]update.Update, error) {
	if policy.Show == none {
		return nil, nil
	}
	all, err := b.Updates.Peek(ctx)
	if err != nil {
		return nil, err
	}
	if !policy.Since.IsZero() {
		all = slices.DeleteFunc(all, func(u update.Update) bool { return !u.TS.After(policy.Since) })
	}
	if policy.Skip == nil {
		return all, nil
	}
	reporters, err := b.Updates.Reporters(all)
	if err != nil {
		return nil, err
	}
	var fresh []update.Update
	for i, u := range all {
		if !policy.Skip(reporters[i]) {
			fresh = append(fresh, u)
		}
	}
	return fresh, nil
}

// settleUpdates decides what became of popped updates: once the agent began to answer it has read them.
func (t *Turn) settleUpdates(ctx context.Context) error {
	shown := t.conv.Updates().Shown
	if t.claim == nil && (shown == nil || len(t.peeked) == 0) {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // also after a stop
	standing, err := t.Run.Standing()
	if err != nil {
		return err
	}
	if t.claim == nil {
		if !standing.Started {
			return nil
		}
		newest := slices.MaxFunc(t.peeked, func(a, b update.Update) int { return a.TS.Compare(b.TS) })
		return shown(ctx, newest.TS)
	}
	if standing.Started {
		return t.claim.Deliver(ctx)
	}
	return t.claim.Return(ctx)
}
