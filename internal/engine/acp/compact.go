package acp

import (
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
func (e *Engine) Compact(ctx context.Context, r engine.Request, instructions string, sink engine.Sink) (c engine.Compaction, err error) {
	old := r.Session.ID
	r.Session.Fork, r.Session.Messages = true, nil
	if err := errors.Join(e.own(old), e.fit(r)); err != nil {
		return c, err
	}
	if r, err = command.Reserve(ctx, r); err != nil {
		return c, err
	}
	r.Input.Attachments, r.Input.Delta = nil, nil
	r.Input.Prompt = "Summarize this conversation for its continuation in a new session, which will know only your summary. Use no tool. " +
		"Answer with the summary alone, by these instructions:\n" + instructions
	v, err := e.enter(ctx, r)
	if err != nil {
		return c, err
	}
	defer v.leave(ctx, true)
	quiet := func(event runlog.Event) error {
		if event.Type == runlog.Request || event.Type == runlog.UsageEvent {
			return sink(event)
		}
		return nil
	}
	t := &turn{sink: quiet}
	if err := e.talk(ctx, r, v, t, func(ctx context.Context) error { return e.work(ctx, r, v, t) }); err != nil {
		return c, err
	}
	if strings.TrimSpace(t.text) == "" {
		return c, errors.New("compaction failed: the agent wrote no summary")
	}
	next := note{ID: e.newID(), Parent: old, Version: t.note.Version, Seed: "Summary of the conversation so far:\n\n" + t.text}
	c = engine.Compaction{Session: next.ID, Summary: t.text, Before: t.cost.context, After: len(next.Seed) / engine.BytesPerToken}
	f := e.folder(next.ID)
	said := transcript.Entry{Message: transcript.Said(transcript.User, next.Seed), At: e.Disk.Now()}
	if err := errors.Join(store.MkdirOwn(string(f)), f.write(next), f.say(said)); err != nil {
		return c, fmt.Errorf("compaction failed: %w", err)
	}
	return c, sink(runlog.Event{Type: runlog.Compacted, Session: c.Session, Parent: old, Text: c.Summary, Before: c.Before, After: c.After})
}
