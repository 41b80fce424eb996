package run_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit"
)

// listening is a context that notes when somebody first waits for its end.
type listening struct {
	context.Context //nolint:containedctx // it is a context

	heard bool
}

func (l *listening) Done() <-chan struct{} {
	l.heard = true
	return l.Context.Done()
}

// TestSignalsEndTheContext: from the beginning of a run on, a signal ends its context and not the process.
func TestSignalsEndTheContext(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(context.Context, *run.Runner) error{
		"run": func(ctx context.Context, r *run.Runner) error { _, err := r.Run(ctx, routine()); return err },
		"work": func(ctx context.Context, r *run.Runner) error {
			_, err := run.Work(ctx, r, runlog.Record{}, 1, func(context.Context, *runlog.Run, run.Raise) error { return nil })
			return err
		},
	} {
		s, ctx := newFixture(t, t.TempDir(), plays(answered()...)), &listening{Context: t.Context()}
		process := s.Host.Process
		s.Host.Process = func() runlog.Process {
			if !ctx.heard {
				t.Errorf("%s: the process describes itself before it waits for signals", name)
			}
			return process()
		}
		if err := do(ctx, s.Runner); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWork: the money of work is on record before it begins and settled when it ends, its context ends with it, and its record says how it
// ended: withdrawn only if the owner began it.
func TestWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		owner     bool
		cause     error // that ends the caller's context
		fault     error // of the work
		outcome   runlog.Outcome
		reason    string
		withdrawn bool
	}{
		"ok":                       {outcome: runlog.OK},
		"failed":                   {fault: errTest, outcome: runlog.Failed, reason: errTest.Error()},
		"stopped":                  {cause: context.Canceled, fault: errTest, outcome: runlog.Interrupted, reason: "context canceled"},
		"the caller has a reason":  {cause: run.ErrPaused, fault: errTest, outcome: runlog.Paused, reason: "paused"},
		"withdrawn by the owner":   {owner: true, cause: run.ErrWithdrawn, fault: run.ErrWithdrawn, outcome: runlog.Failed, reason: "withdrawn", withdrawn: true},
		"withdrawn by a job":       {cause: run.ErrWithdrawn, fault: run.ErrWithdrawn, outcome: runlog.Failed, reason: "withdrawn"},
		"not withdrawn, the owner": {owner: true, outcome: runlog.OK},
	} {
		s := newFixture(t, t.TempDir(), plays())
		ctx, cancel := context.WithCancelCause(t.Context())
		var during context.Context
		got, err := run.Work(ctx, s.Runner, runlog.Record{Owner: c.owner}, 0.5, func(ctx context.Context, r *runlog.Run, raise run.Raise) error {
			during = ctx
			stored, err := s.Runs.Load(r.ID)
			if err != nil || !stored.Accounted || stored.Reserved == 0 || s.reserved(t) == 0 || lock.Free(s.Home.RunLock(r.ID)) || raise == nil {
				t.Errorf("%s: begins with %+v, %v", name, stored, err)
			}
			if c.cause != nil {
				cancel(c.cause)
				<-ctx.Done()
			}
			return errors.Join(c.fault, r.Event(ctx, runlog.Event{Type: runlog.UsageEvent, Cost: 0.25, Usage: &runlog.Usage{In: 1}}))
		})
		if during.Err() == nil {
			t.Errorf("%s: its context has not ended", name)
		}
		cancel(nil)
		if (err == nil) != (c.outcome == runlog.OK) || got.Outcome != c.outcome || !strings.Contains(got.Error, c.reason) || got.Withdrawn != c.withdrawn {
			t.Errorf("%s: %s, %q, withdrawn %v: %v", name, got.Outcome, got.Error, got.Withdrawn, err)
		}
		totals, err := s.Spend.Totals()
		if err != nil || totals.Today.Reserved != 0 || totals.Today.Spent != 0.25 {
			t.Errorf("%s: the account has %+v, %v", name, totals.Today, err)
		}
		if !lock.Free(s.Home.RunLock(got.ID)) || len(s.warned) > 0 {
			t.Errorf("%s: its lock is left, or warned %q", name, s.warned)
		}
	}
}

// TestHighestCostOfWork: work may cost what its caller says, whatever the limit of a run is: a raise takes half more than is asked for.
func TestHighestCostOfWork(t *testing.T) {
	t.Parallel()
	s := newFixture(t, t.TempDir(), plays())
	_, err := run.Work(t.Context(), s.Runner, runlog.Record{}, 3, func(ctx context.Context, _ *runlog.Run, raise run.Raise) error {
		got, err := raise(ctx, 1, 2)
		if reserved := s.reserved(t); got != 2 || reserved != 2.5 {
			t.Errorf("raised to %v, reserved %v", got, reserved)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestWorkThatCannotBegin: without an id, its lock, or money, no work is done.
func TestWorkThatCannotBegin(t *testing.T) {
	t.Parallel()
	const id = "20260302T080000.000Z-aaaaaa"
	for name, prep := range map[string]func(s *fixture) error{
		"no id": func(s *fixture) error { s.Random = iotest.ErrReader(errTest); return nil },
		"its lock is held": func(s *fixture) error {
			held, err := s.Runs.Hold(id)
			t.Cleanup(held.Leave)
			return err
		},
		"no record": func(s *fixture) error { return os.MkdirAll(s.Home.Run(id, "run.json"), 0o700) },
		"no money":  func(s *fixture) error { s.Spend.Limits.RunsPerDay = 0; return nil },
	} {
		s := newFixture(t, t.TempDir(), plays())
		if err := prep(s); err != nil {
			t.Fatal(err)
		}
		record := runlog.Record{ID: map[bool]string{true: "", false: id}[name == "no id"]}
		got, err := run.Work(t.Context(), s.Runner, record, 1, func(context.Context, *runlog.Run, run.Raise) error {
			t.Errorf("%s: it works", name)
			return nil
		})
		if err == nil || (got.Outcome == runlog.Refused) != (name == "no money") || errors.Is(err, run.ErrRefused) != (name == "no money") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestRaiseOfWorkWaits: each raise of work is on disk when it returns, whichever engine it asks: it pays for several requests.
func TestRaiseOfWorkWaits(t *testing.T) {
	t.Parallel()
	waited := false
	for fault := range testkit.Faults(t, syscall.EIO) {
		s := newFixture(t, testkit.MemoryDir(t), plays())
		s.Spend.Share = 4 // so much of the highest cost is reserved when it begins
		_, err := run.Work(t.Context(), s.Runner, runlog.Record{Engine: engine.Native}, 1, func(ctx context.Context, _ *runlog.Run, raise run.Raise) (err error) {
			fault.In(string(s.Home), func() { _, err = raise(ctx, 0.5, 0.5) })
			return err
		})
		if waits := strings.HasPrefix(fault.Call, "fsync "); waits {
			waited = true
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("%s fails: %v", fault.Call, err)
			}
		}
	}
	if !waited {
		t.Error("the raise did not wait for the disk")
	}
}

// TestClosedByAnother: a run whose file says that another process has closed it writes nothing more.
func TestClosedByAnother(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(s *fixture, steal func(id string) error) (runlog.Record, error){
		"run": func(s *fixture, steal func(id string) error) (runlog.Record, error) {
			spec := routine()
			s.Engines = engines(&actor{run: func(_ context.Context, r engine.Request, _ engine.Tools, _ engine.Sink) error { return steal(r.Run.ID) }})
			spec.Origin = &caller{report: func(*runlog.Run) { t.Error("it reports") }}
			return s.Run(t.Context(), spec)
		},
		"work": func(s *fixture, steal func(id string) error) (runlog.Record, error) {
			return run.Work(t.Context(), s.Runner, runlog.Record{}, 1, func(_ context.Context, r *runlog.Run, _ run.Raise) error { return steal(r.ID) })
		},
	} {
		s := newFixture(t, t.TempDir(), plays())
		got, err := do(s, func(id string) error {
			r, err := s.Runs.At(id)
			if err == nil {
				err = r.Finish(runlog.Failed, "its process has died")
			}
			return errors.Join(err, os.WriteFile(s.Home.RunLock(id), []byte(id+" 0000000000001\n"), 0o600))
		})
		if !errors.Is(err, runlog.ErrClosed) || got.Outcome != runlog.Failed || got.Error != "its process has died" {
			t.Errorf("%s: %s, %q, %v", name, got.Outcome, got.Error, err)
		}
	}
}
