package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/transcript"
)

// ask runs the engine. While the service is overloaded and nothing with effects has happened, it tries again until ctx ends, or with
// another model, see fallBack.
func (t *Turn) ask(ctx context.Context, r engine.Request) error {
	wait := backoff.NewExponentialBackOff()
	waited, begun := time.Duration(0), t.book.Sessions.Disk.Now()
	var passed error // why models of the fallback were passed over
	r.Input.Delta = watched(r.Input.Delta, &t.shown)
	r.Run.Locks, r.Session.Follow, r.Session.Discard, r.Session.Messages = t.locks(r), t.history.Follow, t.history.Discard, t.history.Messages
	for {
		r.Session.ID, r.Session.Fork, r.Limits.Spent = t.current.session, false, t.spent
		if err := r.Limits.Affordable(0); err != nil {
			return err
		}
		if t.current.session == "" && t.current.parent != "" {
			r.Session.ID, r.Session.Fork = t.current.parent, true
		}
		lead := t.lead(ctx, r)
		result, err := t.Engine.Run(ctx, lead.request(r), t.Tools, lead.sink(t.sink(ctx)))
		lead.ended()
		var overloaded *engine.Overloaded
		temporary, pause := errors.As(err, &overloaded), time.Duration(0)
		if temporary {
			pause = max(overloaded.After, wait.NextBackOff())
		}
		if errors.Is(err, engine.ErrModel) || temporary && t.Fallback.tired(begun, t.book.Sessions.Disk.Now().Add(pause)) {
			fell, over := t.fallBack(ctx, &r, err)
			if passed = errors.Join(passed, over); fell {
				waited, begun = 0, t.book.Sessions.Disk.Now()
				wait.Reset()
				continue
			}
		}
		if err != nil {
			err = errors.Join(err, passed)
		}
		if !temporary {
			if t.answer = result.Text; t.history.Discard { // the turn's next message needs the earlier ones
				said := []transcript.Message{transcript.Said(transcript.User, r.Input.Prompt)}
				t.history.Messages = slices.Concat(t.history.Messages, said, result.Messages)
			}
			return err
		}
		standing, standErr := t.Run.Standing()
		if standErr != nil || standing.Effects {
			return errors.Join(err, standErr)
		}
		if waited += pause; r.Limits.Patience > 0 && waited > r.Limits.Patience {
			return err
		}
		retry := runlog.Event{Type: runlog.Retry, Text: overloaded.Error()}
		if err := errors.Join(t.sink(ctx)(retry), t.book.Sleep(ctx, pause)); err != nil {
			return err
		}
		if t.keeper != nil {
			t.keeper.Restart()
		}
	}
}

// sink records what the engine does, and saves the session's id as soon as it is known.
func (t *Turn) sink(ctx context.Context) engine.Sink {
	return func(e runlog.Event) error {
		if err := t.meter.take(e); err != nil {
			return err
		}
		if e.Type == runlog.Session || e.Type == runlog.Compacted {
			if err := t.moved(ctx, e); err != nil {
				return err
			}
		}
		t.model, t.spent = cmp.Or(e.Model, t.model), t.spent+e.Cost
		t.observe(e)
		err := t.Run.Event(context.WithoutCancel(ctx), e)
		if e.Type == runlog.CompactFailed && e.Tool == "" && t.conv.Event() != "" { // an automatic compaction
			err = errors.Join(err, t.book.Updates.Add(context.WithoutCancel(ctx), fmt.Sprintf("%s: the session is long and was to be compacted, which failed "+
				"(%s). The next attempt is made a day later, or when the session has grown by a sixteenth of the length at which it is compacted.",
				t.Run.Label(), e.Text), t.Run.ID))
		}
		return err
	}
}

func (t *Turn) observe(e runlog.Event) {
	if t.keeper != nil {
		t.keeper.Note(e)
	}
	if t.Observe != nil {
		t.Observe(e)
	}
}

// moved follows the session to its new id. A persistent session is noted in the history by each run, which shows when it was
// used; any other once, when it begins.
func (t *Turn) moved(ctx context.Context, e runlog.Event) error {
	kind := t.conv.Event()
	if kind == "" {
		if t.history.Discard || t.history.Messages != nil || e.Session == "" { // the session is not kept
			return nil
		}
		t.current.session = e.Session
		return t.conv.Save(ctx, e.Session)
	}
	if t.history.joins {
		if err := t.join(ctx, e); err != nil {
			return err
		}
	}
	again := e.Session == t.current.session
	if e.Session == "" || again && (t.current.noted || !t.conv.Traits().Persistent) {
		return nil
	}
	event, log := session.Event{SessionID: e.Session, Event: kind}, t.book.Sessions.Log
	switch {
	case e.Type == runlog.Compacted:
		event.Event, event.ParentSessionID = session.Compacted, t.current.session
	case !again:
		event.ParentSessionID = cmp.Or(t.current.parent, t.current.former)
	default:
		log = t.book.Sessions.Used
	}
	t.current.session, t.current.noted = e.Session, true
	steps := []func() error{
		func() error { return t.conv.Save(ctx, e.Session) },
		func() error { return log(context.WithoutCancel(ctx), event) },
	}
	if e.Type == runlog.Compacted || t.history.From != "" { // a kill in between leaves the old session, or a new one with its parent
		slices.Reverse(steps)
	}
	for _, step := range append([]func() error{func() error { return t.noteCarry(e.Session) }}, steps...) {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
