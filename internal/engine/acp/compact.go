package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// Compact has a branch of the session summarized, and begins a session whose first prompt follows the summary. The old session is not
// changed.
func (e *Engine) Compact(ctx context.Context, r engine.Request, instructions string, sink engine.Sink) (engine.Compaction, error) {
	c, _, err := e.compact(ctx, r, instructions, sink)
	return c, err
}

// shorten compacts the session of a request before its turn if it is as long as Full allows, and counts what that costs in the result. A
// failure is recorded, and the turn goes on with the session as it is.
func (e *Engine) shorten(ctx context.Context, r *engine.Request, result *engine.Result, sink engine.Sink) error {
	s := r.Session
	if s.Begins() || !s.Kept() || r.Input.Nudge || !e.Profile.Promises.Branch {
		return nil
	}
	n, err := e.folder(s.ID).read()
	if err != nil {
		return err
	}
	size, at := n.Context, s.Full.At(e.Models.Resolve(bare(cmp.Or(r.Model.Name, n.Model))), e.window(n)*engine.FullAt/100)
	if e.Profile.Quotes || size == 0 {
		said, err := e.said(s.ID)
		if err != nil {
			return err
		}
		size = (len(said) + len(r.Input.System)) / engine.BytesPerToken
	}
	now := e.Disk.Now()
	if size < at || n.Full > 0 && !engine.CompactAgain(size, at, n.Full, now.Sub(n.Failed)) {
		return nil
	}
	c, cost, err := e.compact(ctx, *r, engine.SummaryInstructions, sink)
	result.Cost, result.Usage, r.Limits.Spent = cost.booked, cost.usage, r.Limits.Spent+cost.booked
	if busy := (*engine.Overloaded)(nil); ctx.Err() != nil || errors.Is(err, engine.ErrUnavailable) || errors.As(err, &busy) {
		return err // the turn would fail too
	}
	if err != nil {
		n.Full, n.Failed = size, now
		return errors.Join(e.folder(s.ID).write(n), sink(runlog.Event{Type: runlog.CompactFailed, Text: err.Error()}))
	}
	r.Session.ID = c.Session
	return nil
}

// window returns the window of a session's model, in tokens.
func (e *Engine) window(n note) int {
	return cmp.Or(n.Window, e.Models.Resolve(bare(n.Model)).Window, engine.CommonWindow)
}

func (e *Engine) compact(ctx context.Context, r engine.Request, instructions string, sink engine.Sink) (c engine.Compaction, cost bill, err error) {
	old := r.Session.ID
	r.Session.Fork, r.Session.Messages = true, nil
	if err := errors.Join(e.own(old), e.fit(r)); err != nil {
		return c, cost, err
	}
	if r, err = command.Reserve(ctx, r); err != nil {
		return c, cost, err
	}
	r.Input.Attachments, r.Input.Delta = nil, nil
	r.Input.Prompt = "Summarize this conversation for its continuation in a new session, which will know only your summary. Use no tool. " +
		"Answer with the summary alone, by these instructions:\n" + instructions
	v, err := e.enter(ctx, r)
	if err != nil {
		return c, cost, err
	}
	defer v.leave(ctx, true)
	quiet := func(event runlog.Event) error {
		if event.Type == runlog.Request || event.Type == runlog.UsageEvent {
			return sink(event)
		}
		return nil
	}
	t := &turn{sink: quiet}
	err = e.talk(ctx, r, v, t, func(ctx context.Context) error { return e.work(ctx, r, v, t) })
	if cost = t.cost; err != nil {
		return c, cost, err
	}
	if strings.TrimSpace(t.text) == "" {
		return c, cost, errors.New("compaction failed: the agent wrote no summary")
	}
	next := note{ID: e.newID(), Parent: old, Version: t.note.Version, Model: t.model, Window: cost.window, Seed: "Summary of the conversation so far:\n\n" + t.text}
	c = engine.Compaction{Session: next.ID, Summary: t.text, Before: cost.context, After: len(next.Seed) / engine.BytesPerToken}
	f := e.folder(next.ID)
	said := transcript.Entry{Message: transcript.Said(transcript.User, next.Seed), At: e.Disk.Now()}
	if err := errors.Join(store.MkdirOwn(string(f)), f.write(next), f.say(said)); err != nil {
		return c, cost, fmt.Errorf("compaction failed: %w", err)
	}
	return c, cost, sink(runlog.Event{Type: runlog.Compacted, Session: c.Session, Parent: old, Text: c.Summary, Before: c.Before, After: c.After})
}
