package run_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/spend"
)

// TestEndOfARun: the record and the events name the reason for which a run ended, and the kind of fault.
func TestEndOfARun(t *testing.T) {
	t.Parallel()
	retry := runlog.Event{Type: runlog.Retry, Text: "busy"}
	for name, c := range map[string]struct {
		events    []runlog.Event
		err       error // of the engine
		cause     error // that ends the context
		owner     bool
		stop      string // that ollim stop said
		outcome   runlog.Outcome
		reason    string
		fault     string
		withdrawn bool
	}{
		"ok":                     {outcome: runlog.OK},
		"failed":                 {err: errTest, outcome: runlog.Failed, reason: errTest.Error()},
		"a full disk":            {err: syscall.ENOSPC, outcome: runlog.Failed, reason: "no space left on device", fault: "disk"},
		"timeout":                {err: run.ErrTimeout, outcome: runlog.Timeout, reason: "stopped after 1h"},
		"timeout while busy":     {events: []runlog.Event{retry, retry}, err: run.ErrTimeout, outcome: runlog.Failed, reason: "the model service did not answer within 1h, the last try: busy", fault: "service"},
		"timeout after one try":  {events: []runlog.Event{retry}, err: run.ErrTimeout, outcome: runlog.Timeout, reason: "stopped after 1h"},
		"timeout after a result": {events: []runlog.Event{retry, retry, {Type: runlog.Text, Text: "x"}}, err: run.ErrTimeout, outcome: runlog.Timeout, reason: "stopped after 1h"},
		"failed while busy":      {events: []runlog.Event{retry, retry}, err: errTest, outcome: runlog.Failed, reason: errTest.Error()},
		"a signal":               {err: context.Canceled, cause: context.Canceled, outcome: runlog.Interrupted, reason: "stopped by a signal"},
		"ollim stop":             {err: context.Canceled, cause: context.Canceled, stop: "stopped by ollim stop", outcome: runlog.Interrupted, reason: "stopped by ollim stop"},
		"a silent server":        {err: run.ErrSilent, outcome: runlog.Interrupted, reason: run.ErrSilent.Error()},
		"withdrawn":              {err: errors.Join(context.Canceled, run.ErrWithdrawn), cause: run.ErrWithdrawn, owner: true, outcome: runlog.Failed, reason: "withdrawn", withdrawn: true},
		"withdrawn, no owner":    {err: errors.Join(context.Canceled, run.ErrWithdrawn), cause: run.ErrWithdrawn, outcome: runlog.Failed, reason: "withdrawn"},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		e := plays()
		s, spec := newFixture(t, t.TempDir(), e), routine()
		e.run = func(_ context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) error {
			err := all(sink, append([]runlog.Event{{Type: runlog.Session, Session: "s"}}, c.events...)...)
			if c.cause != nil {
				cancel(c.cause)
			}
			if c.stop != "" {
				err = errors.Join(err, s.Runs.AskStop(r.Run.ID, c.stop))
			}
			return errors.Join(err, c.err)
		}
		spec.Policy.Owner = c.owner
		got, err := s.Run(ctx, spec)
		cancel(nil)
		if got.Outcome != c.outcome || got.Error != c.reason || got.Fault != c.fault || got.Withdrawn != c.withdrawn || (err == nil) != (c.outcome == runlog.OK) || len(s.warned) > 0 {
			t.Errorf("%s: %s, %q, fault %q, withdrawn %v, %v, warned %q", name, got.Outcome, got.Error, got.Fault, got.Withdrawn, err, s.warned)
		}
		said := ""
		for event, err := range s.Runs.Events(got.ID, new(int)) {
			if err == nil && event.Type == runlog.ErrorEvent {
				said = event.Text
			}
		}
		if said != c.reason {
			t.Errorf("%s: the events say %q", name, said)
		}
	}
}

// TestRunAtALimit: a run that a limit ended before it spent anything is taken back if it may run later, with its record, its reservation
// and its note in the lock of the job; else it is refused. One that has spent keeps its end.
func TestRunAtALimit(t *testing.T) {
	t.Parallel()
	limit := func(passing bool) *spend.Limit {
		return &spend.Limit{Key: "per-day", Allowed: 5, Needs: 1, Until: time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC), Passing: passing}
	}
	paused := &run.Refusal{Kind: run.ErrPaused, Reason: "paused"}
	for name, c := range map[string]struct {
		err      error // of the origin
		spent    bool
		queued   bool
		postpone error // of the origin
		outcome  runlog.Outcome
		later    bool // the error is a *Later
		back     bool // the run was taken back
	}{
		"reached":               {err: limit(false), outcome: runlog.Refused},
		"reached by others":     {err: limit(true), later: true, back: true},
		"reached, queued":       {err: limit(false), queued: true, later: true, back: true},
		"spent":                 {err: limit(true), spent: true, outcome: runlog.Failed},
		"no fork":               {err: session.ErrNoFork, back: true},
		"paused":                {err: paused, outcome: runlog.Paused},
		"paused, queued":        {err: paused, queued: true, back: true},
		"cannot be postponed":   {err: limit(true), postpone: errTest, later: true, back: true},
		"queued, not for later": {err: limit(true), queued: true, postpone: errTest, later: true},
	} {
		e := plays()
		s, spec := newFixture(t, t.TempDir(), e), routine()
		e.run = func(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) error {
			return errors.Join(all(sink, answered()...), c.err)
		}
		guard, err := lock.TryGuard(s.Home.JobLock("a"))
		if err == nil {
			err = guard.Note("before\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		postponed := false
		spec.Identity.Guard, spec.Identity.Queued = guard, c.queued
		spec.Origin = &caller{
			prepare: func(in prompt.Input) (prompt.Input, error) {
				if c.spent {
					return in, nil
				}
				return in, c.err
			},
			postpone: func(*run.Later) error { postponed = true; return c.postpone },
		}
		got, err := s.Run(t.Context(), spec)
		if !errors.Is(err, c.err) && !errors.As(err, new(*run.Later)) && c.outcome != runlog.Refused || errors.As(err, new(*run.Later)) != c.later || postponed != c.later {
			t.Errorf("%s: %v, postponed %v", name, err, postponed)
		}
		if got.Outcome != c.outcome || errors.Is(err, run.ErrRefused) != (c.outcome == runlog.Refused) {
			t.Errorf("%s: %s, %v", name, got.Outcome, err)
		}
		left := 0
		for r, err := range s.Runs.List() {
			if left++; err != nil || !r.Done() {
				t.Errorf("%s: %s is left, %v", name, r.ID, err)
			}
		}
		if (left == 0) != c.back || strings.HasPrefix(lock.ReadNote(s.Home.JobLock("a")), "before") != c.back {
			t.Errorf("%s: left %d runs, noted %q", name, left, lock.ReadNote(s.Home.JobLock("a")))
		}
		if s.reserved(t) != 0 || (len(s.warned) > 0) != (c.postpone != nil && c.back) {
			t.Errorf("%s: reserved %v, warned %q", name, s.reserved(t), s.warned)
		}
	}
}

// TestPriceOfARun: the record has the price of the model that answered.
func TestPriceOfARun(t *testing.T) {
	t.Parallel()
	s := newFixture(t, t.TempDir(), plays(runlog.Event{Type: runlog.Session, Session: "s", Model: "claude-opus-4-5"}))
	s.Settings.Models = model.Known
	if got, err := s.Run(t.Context(), routine()); err != nil || got.Price == nil || got.Price.In == 0 {
		t.Errorf("%+v, %v", got.Price, err)
	}
}
