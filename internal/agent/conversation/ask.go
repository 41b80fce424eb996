package conversation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// ask runs the engine, again and again while the service behind it is overloaded and nothing with effects has happened,
// until ctx ends.
func (t *Talk) ask(ctx context.Context, r engine.Request) (engine.Result, error) {
	wait := backoff.NewExponentialBackOff()
	waited := time.Duration(0)
	r.Run.Locks = t.hold(r)
	for {
		r.Session.ID, r.Session.Fork, r.Limits.Spent = t.session, false, t.spent
		if err := r.Limits.Affordable(0); err != nil {
			return engine.Result{}, err
		}
		if t.session == "" && t.parent != "" {
			r.Session.ID, r.Session.Fork = t.parent, true
		}
		result, err := t.engine.Run(ctx, r, t.tools, t.sink(ctx))
		var overloaded *engine.Overloaded
		if !errors.As(err, &overloaded) {
			return result, err
		}
		standing, standErr := t.run.Standing()
		if standErr != nil || standing.Effects {
			return result, errors.Join(err, standErr)
		}
		pause := max(overloaded.After, wait.NextBackOff())
		if waited += pause; r.Limits.Patience > 0 && waited > r.Limits.Patience {
			return result, err
		}
		retry := runlog.Event{Type: runlog.Retry, Text: overloaded.Error()}
		if err := errors.Join(t.sink(ctx)(retry), t.room.Sleep(ctx, pause)); err != nil {
			return result, err
		}
	}
}

// sink records what the engine does, and saves the session's id before anything else can go wrong.
func (t *Talk) sink(ctx context.Context) engine.Sink {
	return func(e runlog.Event) error {
		if err := t.meter.Take(e); err != nil {
			return err
		}
		if e.Type == runlog.Session || e.Type == runlog.Compacted {
			if err := t.moved(ctx, e); err != nil {
				return err
			}
		}
		t.spent += e.Cost
		if t.room.Watch != nil {
			t.room.Watch(e)
		}
		return errors.Join(t.run.Event(context.WithoutCancel(ctx), e), t.reportUncompacted(ctx, e))
	}
}

// reportUncompacted adds an update about a compaction that the engine began by itself and that failed.
func (t *Talk) reportUncompacted(ctx context.Context, e runlog.Event) error {
	if e.Type != runlog.CompactFailed || e.Tool != "" || t.place.Mode == job.Asked {
		return nil
	}
	return t.room.Updates.Add(context.WithoutCancel(ctx), prompt.NotCompacted(t.run.Label(), e.Text), t.run.ID)
}

// moved follows the session to its new id. A persistent session is noted in the history at every fire, so that it shows
// when it was used; any other once, when it begins.
func (t *Talk) moved(ctx context.Context, e runlog.Event) error {
	if t.place.Mode == job.Asked { // its transcript is all that is kept of it
		if !t.place.Discard {
			t.session = cmp.Or(e.Session, t.session)
		}
		return nil
	}
	again := e.Session == t.session
	if e.Session == "" || again && (t.noted || t.place.Mode != job.Persistent) {
		return nil
	}
	event := session.Event{SessionID: e.Session, Event: t.born()}
	switch {
	case e.Type == runlog.Compacted:
		event.Event, event.ParentSessionID = session.Compacted, t.session
	case !again:
		event.ParentSessionID = cmp.Or(t.parent, t.former)
	}
	t.session, t.noted = e.Session, true
	steps := []func() error{
		func() error { return t.save(e.Session) },
		func() error { return t.room.Sessions.Log(context.WithoutCancel(ctx), event) },
	}
	if e.Type == runlog.Compacted { // killed in between, the session goes on as it was, and a summary always has its parent
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// born is the history event of a session that begins.
func (t *Talk) born() session.Kind {
	switch t.place.Mode {
	case job.Forked:
		return session.BgFork
	case job.Isolated:
		return session.IsolatedBg
	case job.Persistent:
		return session.PersistentBg
	}
	return session.Created
}

func (t *Talk) save(id string) error {
	switch t.place.Mode {
	case job.Foreground:
		return t.room.Sessions.SetMain(id)
	case job.Persistent:
		return t.room.Sessions.SetRoutine(t.place.Routine, id)
	}
	return nil
}

// lost begins anew when the engine has forgotten the session; the old id stays in the history as the parent of the next.
func (t *Talk) lost(ctx context.Context) error {
	old := cmp.Or(t.session, t.parent)
	t.session, t.parent, t.former = "", "", old
	return t.run.Event(ctx, runlog.Event{Type: runlog.SessionLost, Session: old})
}
