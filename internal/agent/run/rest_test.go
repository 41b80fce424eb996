package run_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/spend"
)

// TestReportedRefusal: the owner is told once why a run is refused, with how many fires were, and a cause that cannot be stored is a warning.
func TestReportedRefusal(t *testing.T) {
	t.Parallel()
	s := newFixture(t, t.TempDir(), plays())
	record := runlog.Record{ID: "x", Subject: runlog.Subject{Kind: "routine", Job: "a"}, Error: "no"}
	s.ReportRefusal(t.Context(), record, run.Refuse("no"), 2)
	page, err := s.Notices.Read()
	if c := page.Causes["refused a"]; err != nil || c.Jobs["a"] != (notice.Count{Name: "a", Failed: 2}) || len(s.warned) > 0 {
		t.Errorf("%+v, %v, warned %q", page.Causes, err, s.warned)
	}
	if err := errors.Join(os.RemoveAll(s.Home.State("ledger")), os.Symlink("/dev/null/none", s.Home.State("ledger"))); err != nil {
		t.Fatal(err)
	}
	if s.ReportRefusal(t.Context(), record, run.Refuse("no"), 1); len(s.warned) != 1 {
		t.Errorf("warned %q", s.warned)
	}
}

// TestEnvironmentOfARun: the programs of a run know its id, its job and its slot.
func TestEnvironmentOfARun(t *testing.T) {
	t.Parallel()
	s := newFixture(t, t.TempDir(), plays())
	s.Host.Env = []string{"A=b"}
	at := s.now.In(time.FixedZone("east", 3600))
	record := runlog.Record{ID: "x", Subject: runlog.Subject{Job: "a"}}
	if got := s.EnvOf(&runlog.Run{Record: record}); !slices.Equal(got, []string{"A=b", "OLLIM_RUN=x", "OLLIM_JOB=a"}) {
		t.Errorf("%q", got)
	}
	record.Scheduled = &at
	if got := s.EnvOf(&runlog.Run{Record: record}); len(got) != 4 || got[3] != "OLLIM_SLOT=2026-03-02T09:00:00Z" {
		t.Errorf("%q", got)
	}
	if set := s.Tools(&runlog.Run{Record: record}); len(set.World.Env) != 4 {
		t.Errorf("tools of a run that another process has begun: %q", set.World.Env)
	}
}

// TestNumberOfANotice: the message of a cause that a run has met is one of the run's, if the run has files.
func TestNumberOfANotice(t *testing.T) {
	t.Parallel()
	s := newFixture(t, t.TempDir(), plays())
	s.begin(t, routine())
	defer s.begun.Release()
	id := s.begun.Run().ID
	if got, err := s.Notify().Number(t.Context(), id, "It fails."); err != nil || got != session.MessageID(id, 1) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := s.Notify().Number(t.Context(), "20260302T080000.000Z-aaaaaa", "It fails."); err == nil {
		t.Errorf("of a run without files: %q", got)
	}
}

// TestAnswerThatMeetsALimit: a run that continues goes on waiting if it meets a limit before its agent has read the answer; afterwards the
// limit is its end. It keeps its record either way.
func TestAnswerThatMeetsALimit(t *testing.T) {
	t.Parallel()
	for _, read := range []bool{false, true} {
		s := newFixture(t, t.TempDir(), plays())
		wait(t, s)
		then := s.begun.Run().Record
		events := []runlog.Event{{Type: runlog.Answered, Reported: then.Cost}}
		if read {
			events = append(events, runlog.Event{Type: runlog.Text, Text: "so"})
		}
		e := plays(events...)
		s.Engines = engines(e)
		play := e.run
		limit := &spend.Limit{Key: "per-day", Allowed: 5, Until: s.now.Add(time.Hour)}
		e.run = func(ctx context.Context, r engine.Request, set engine.Tools, sink engine.Sink) error {
			return errors.Join(play(ctx, r, set, sink), limit)
		}
		spec := routine()
		spec.Identity.Run, spec.Identity.Again = then.ID, true
		spec.Origin = &caller{begin: func(r *runlog.Record) error {
			*r = then
			r.Continued, r.Finished, r.Outcome, r.Settled = 1, nil, "", then.Cost
			return nil
		}}
		got, err := s.Run(t.Context(), spec)
		later := errors.As(err, new(*run.Later))
		stored, loadErr := s.Runs.Load(then.ID)
		want := map[bool]runlog.Outcome{false: runlog.Waiting, true: runlog.Failed}[read]
		if later == read || loadErr != nil || stored.Outcome != want || !stored.Done() || s.reserved(t) != 0 {
			t.Errorf("read %v: %+v, %v; %s, %v", read, got, err, stored.Outcome, loadErr)
		}
	}
}

// TestAbandonedRunEnds: what its origin does at the end is done, but a job that no longer exists is not asked whether it may run.
func TestAbandonedRunEnds(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		s, spec, ended := newFixture(t, t.TempDir(), plays()), routine(), 0
		wait(t, s)
		spec.Identity.Run = s.begun.Run().ID
		spec.Origin = &caller{permit: run.Refuse("no"), end: func(context.Context, *tools.Set) { ended++ }}
		if gone {
			spec.Conversation = nil
		}
		got, err := s.Abandon(t.Context(), spec, runlog.Expired, "no answer", "It has ended.")
		if err != nil || got.Outcome != runlog.Expired || ended != 1 || (len(s.warned) == 0) != gone {
			t.Errorf("gone %v: %s, %v, ended %d times, warned %q", gone, got.Outcome, err, ended, s.warned)
		}
	}
}
