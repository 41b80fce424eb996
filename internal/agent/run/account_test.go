package run

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
)

// bench returns a runner of a new directory that expects no warning, and a run in it.
func bench(t *testing.T, record runlog.Record) (*Runner, *runlog.Run) {
	t.Helper()
	dir := paths.Dir(t.TempDir())
	disk := store.Disk{Now: time.Now, Warn: func(text string) { t.Error(text) }}
	r := &Runner{Home: dir, Disk: disk, Zone: time.UTC, Random: rand.Reader, Stores: state.Of(dir, disk, time.UTC)}
	r.Spend.Limits = spend.Limits{PerRun: 1, PerDay: 5, PerMonth: 50, RunsPerDay: 10}
	var err error
	if record.ID, err = runlog.NewID(time.Now(), r.Random); err != nil {
		t.Fatal(err)
	}
	record.Started = time.Now()
	begun, err := r.Runs.Open(record)
	if err != nil {
		t.Fatal(err)
	}
	return r, begun
}

func (r *Runner) accountOf(run *runlog.Run, s Spec) *account {
	return &account{run: run, spec: s, spend: r.Spend, runs: r.Runs, warn: r.Warn}
}

// TestReserve: the highest cost of a run is the configured one or the lower one of its job, unless the owner types one. A script costs
// nothing.
func TestReserve(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		engine string
		limits Limits
		perRun float64
		most   float64
		counts bool
	}{
		{engine.Native, Limits{}, 1, 1, true}, {engine.Native, Limits{Cost: 0.5}, 1, 0.5, true}, {engine.Native, Limits{Cost: 3}, 1, 1, true},
		{engine.Native, Limits{Cost: 3, Typed: true}, 1, 3, true}, {engine.Native, Limits{Typed: true}, 1, 1, true},
		{engine.ClaudeCode, Limits{}, 1, 1, true}, {"script:a.yaml", Limits{Cost: 2}, 1, 2, false},
	} {
		r, run := bench(t, runlog.Record{Engine: c.engine})
		r.Spend.Limits.PerRun = c.perRun
		a := r.accountOf(run, Spec{Limits: c.limits})
		if got, err := a.reserve(t.Context()); got != c.most || err != nil || run.Accounted != c.counts || (run.Reserved > 0) != c.counts {
			t.Errorf("%d: granted %v, %v: %+v", i, got, err, run.Record)
		}
		if waits := c.counts && c.engine != engine.Native; a.waits != waits {
			t.Errorf("%d: every raise waits for the disk: %v", i, a.waits)
		}
		if raise := a.raise(c.most); (raise != nil) != c.counts {
			t.Errorf("%d: the engine can raise: %v", i, raise != nil)
		}
		totals, err := r.Spend.Totals()
		if err != nil || (totals.Today.Reserved > 0) != c.counts {
			t.Errorf("%d: %+v, %v", i, totals, err)
		}
	}
}

// TestReservedBeforeItBegins: the fact that a run of a slot begins says that it has money, so that its end is settled after a crash.
func TestReservedBeforeItBegins(t *testing.T) {
	t.Parallel()
	at := time.Now()
	r, run := bench(t, runlog.Record{Engine: engine.Native, Scheduled: &at})
	if _, err := r.accountOf(run, Spec{}).reserve(t.Context()); err != nil {
		t.Fatal(err)
	}
	said := ""
	for line, err := range r.Spend.Ledger.Lines(time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line.Kind, "run.") {
			said += string(line.JSON)
		}
	}
	if !strings.Contains(said, `"accounted":true`) || !strings.Contains(said, `"reserved":`) {
		t.Errorf("the ledger has %s", said)
	}
}

// TestReserveAtALimit: a run for which nothing is left is refused, and the owner's is not.
func TestReserveAtALimit(t *testing.T) {
	t.Parallel()
	for _, owner := range []bool{false, true} {
		r, run := bench(t, runlog.Record{Engine: engine.Native})
		r.Spend.Limits.RunsPerDay = 0
		got, err := r.accountOf(run, Spec{Policy: Rights{Owner: owner}}).reserve(t.Context())
		if refused := errors.Is(err, ErrRefused); refused == owner || run.Accounted != owner || run.Owner != owner || (got > 0) != owner {
			t.Errorf("owner %v: %v, %v: %+v", owner, got, err, run.Record)
		}
	}
}

// TestRaise: a raise takes half more than was asked for, up to the run's highest cost, and nothing while enough is reserved.
func TestRaise(t *testing.T) {
	t.Parallel()
	r, run := bench(t, runlog.Record{Engine: engine.Native})
	r.Spend.Limits = spend.Limits{PerRun: 4, PerDay: 5, PerMonth: 50, RunsPerDay: 10}
	a := r.accountOf(run, Spec{})
	granted, err := a.reserve(t.Context())
	if err != nil || granted != 4 {
		t.Fatalf("%v, %v", granted, err)
	}
	reserved := func() float64 {
		totals, err := r.Spend.Totals()
		if err != nil {
			t.Fatal(err)
		}
		return totals.Today.Reserved
	}
	before := reserved()
	raise := a.raise(granted)
	if got, err := raise(t.Context(), before/2, before); got != before || err != nil || reserved() != before {
		t.Errorf("enough is reserved: %v, %v, reserved %v", got, err, reserved())
	}
	if !a.waits {
		t.Error("what is reserved after the first request does not wait for the disk")
	}
	if got, err := raise(t.Context(), 1, 3); got != 3 || err != nil || reserved() < 3 || reserved() > 4 {
		t.Errorf("%v, %v, reserved %v", got, err, reserved())
	}
	var limit *overLimit
	if got, err := raise(t.Context(), 60, 60); got != 0 || !errors.As(err, &limit) || !errors.Is(err, engine.ErrMaxCost) {
		t.Errorf("more than a day's limit: %v, %v", got, err)
	}
}

// TestLook: what a run has cost is known when it has ended; while it runs it may still spend, and nothing is known of another one.
func TestLook(t *testing.T) {
	t.Parallel()
	r, run := bench(t, runlog.Record{Engine: engine.Native})
	a := r.accountOf(run, Spec{})
	look := func(account string, cost float64, alive bool) {
		t.Helper()
		if got, lives := a.look(account); got != cost || lives != alive {
			t.Errorf("%s: %v, alive %v, want %v, %v", account, got, lives, cost, alive)
		}
	}
	look("20260302T080000.000Z-aaaaaa", -1, false)
	look(run.Account()+".9", -1, false)
	guard, err := lock.TryGuard(r.Home.RunLock(run.ID))
	if err != nil {
		t.Fatal(err)
	}
	look(run.Account(), 0, true)
	guard.Release()
	err = errors.Join(run.Event(t.Context(), runlog.Event{Type: runlog.Session, Session: "s"}),
		run.Event(t.Context(), runlog.Event{Type: runlog.UsageEvent, Cost: 0.25, Usage: &runlog.Usage{}}), run.Finish(runlog.OK, ""))
	if err != nil {
		t.Fatal(err)
	}
	look(run.Account(), 0.25, false)
}

// TestUnreadableRun: where a run's files cannot be read or written, each step says so.
func TestUnreadableRun(t *testing.T) {
	t.Parallel()
	instead := func(path string) error { return errors.Join(os.RemoveAll(path), os.MkdirAll(path, 0o700)) }
	for what, c := range map[string]struct {
		path func(r *Runner, run string) string
		do   func(r *Runner, run *runlog.Run) error
	}{
		"waits": {
			func(r *Runner, run string) string { return r.Home.Run(run, "events.jsonl") },
			func(_ *Runner, run *runlog.Run) error { return waits(run) },
		},
		"the pings of a background run": {
			func(r *Runner, _ string) string { return r.Home.PingBudget() },
			func(r *Runner, run *runlog.Run) error {
				in := prompt.Input{Task: prompt.Task{Background: true, AllowPing: true}}
				w := &work{r: r, run: run, spec: Spec{Input: in, Origin: idle{}}}
				if _, err := w.prepare(t.Context()); !errors.Is(err, errPrepared) {
					return err
				}
				return nil
			},
		},
		"the patterns": {
			func(r *Runner, _ string) string { return r.Home.Path("tool-policy.yaml") },
			func(r *Runner, _ *runlog.Run) error {
				_, _, err := r.Patterns(true)
				return err
			},
		},
		"a plain reminder": {
			func(r *Runner, run string) string { return r.Home.Run(run, "run.json") },
			func(r *Runner, run *runlog.Run) error {
				r.Host.Sealing.Mode = config.SealOff
				w := &work{r: r, run: run, spec: Spec{Plain: true, Origin: idle{}, Limits: Limits{Time: time.Hour}}}
				if err := w.carryOut(t.Context()); !errors.Is(err, errPrepared) {
					return err
				}
				return nil
			},
		},
		"the pause": {
			func(r *Runner, _ string) string { return r.Home.State("pause.json") },
			func(r *Runner, _ *runlog.Run) error { return r.Paused(false) },
		},
	} {
		r, run := bench(t, runlog.Record{Engine: engine.Native})
		if err := c.do(r, run); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		r.Disk.Warn = func(string) {}
		if err := instead(c.path(r, run.ID)); err != nil {
			t.Fatal(err)
		}
		if c.do(r, run) == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// TestKeptRequests: what cannot be stored of a run's requests is a warning, once, and ends nothing.
func TestKeptRequests(t *testing.T) {
	t.Parallel()
	for _, fault := range []bool{false, true} {
		r, run := bench(t, runlog.Record{Engine: engine.Native})
		var warned []string
		r.Disk.Warn = func(text string) { warned = append(warned, text) }
		if fault {
			if err := os.Mkdir(r.Home.Requests(run.ID), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		w := &work{r: r, run: run}
		keep := w.keeper.keep(r.Requests, run.ID, nil)
		for range 2 {
			keep([]byte(`{}`)).Begun()
		}
		w.kept()
		if n := len(warned); n != map[bool]int{true: 1}[fault] || fault && !strings.Contains(warned[0], run.ID) {
			t.Errorf("fault %v: warned %q", fault, warned)
		}
	}
}

// TestPaceWithoutAPast: the job's schedule says when a session goes on that has no past.
func TestPaceWithoutAPast(t *testing.T) {
	t.Parallel()
	r, run := bench(t, runlog.Record{Engine: engine.Native})
	for again, want := range map[time.Duration]int{0: 0, time.Hour: 1} {
		got := r.past().pace(Spec{Limits: Limits{Again: again}}, run.Record)
		if len(got.Gaps) != want || want == 1 && got.Gaps[0] != again || got.Requests != 0 {
			t.Errorf("%v: %+v", again, got)
		}
	}
}

// TestContextOfASession: a session has the length that its latest run left, and grows by the mean of the runs that made it longer.
func TestContextOfASession(t *testing.T) {
	t.Parallel()
	ran := func(before, after, compactions int) runlog.Record {
		return runlog.Record{SessionAfter: "s", ContextBefore: before, Context: after, Compactions: compactions}
	}
	for i, c := range []struct {
		past    []runlog.Record
		session string
		tokens  int
		growth  int
	}{
		{nil, "s", 0, 0}, {[]runlog.Record{ran(0, 100, 0)}, "", 0, 0}, {[]runlog.Record{ran(0, 100, 0)}, "other", 0, 0},
		{[]runlog.Record{ran(0, 100, 0)}, "s", 100, 0}, {[]runlog.Record{ran(300, 500, 0), ran(200, 300, 0), ran(0, 200, 0)}, "s", 500, 150},
		{[]runlog.Record{ran(100, 900, 1), ran(200, 100, 0), ran(100, 200, 0)}, "s", 900, 100},
	} {
		if got := contextOf(c.past, c.session); got.Tokens != c.tokens || got.Growth != c.growth {
			t.Errorf("%d: %+v, want %d tokens and %d more", i, got, c.tokens, c.growth)
		}
	}
}

// TestWhatTheSealLetsBeWritten: the owner may allow an agent that works inside ollim's process any file, so its seal must not forbid
// what is decided later; the programs of another engine get what its patterns allow.
func TestWhatTheSealLetsBeWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		engine string
		mode   policy.Mode
		may    bool
	}{
		{engine.Native, "", false}, {engine.ClaudeCode, "", false}, {engine.Native, policy.AskOwner, false}, {engine.ClaudeCode, policy.AskOwner, true},
	} {
		r, run := bench(t, runlog.Record{Engine: c.engine, Permissions: string(c.mode)})
		b := &sandbox{r: r, run: run, spec: Spec{Engine: Choice{Name: c.engine}}}
		if got := b.newList().Writable(r.Home.Path("a.md")); got != c.may {
			t.Errorf("%s, mode %q: writable %v", c.engine, c.mode, got)
		}
	}
}

// TestOffline: a run that is offline gets a directory, and is refused where nothing can be sealed.
func TestOffline(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{nil, errors.New("no Landlock")} {
		r, run := bench(t, runlog.Record{})
		r.Host.Sealing = Sealing{Mode: config.SealOff, Temp: t.TempDir(), Check: func() (int, error) { return 4, fault }}
		dir, sealed, err := Offline(r, run.ID)
		if _, statErr := os.Stat(dir); (statErr == nil) != (fault == nil) || errors.Is(err, ErrRefused) != (fault != nil) || (sealed != nil) != (fault == nil) {
			t.Errorf("fault %v: %v, %v, %v", fault, statErr, sealed, err)
		}
	}
}

// idle is an origin that does nothing.
type idle struct{ origin }

// errPrepared is the error of an origin that ends the run.
var errPrepared = errors.New("prepared")

func (idle) Prepare(context.Context, *tools.Set, prompt.Input) (prompt.Input, error) {
	return prompt.Input{}, errPrepared
}
func (idle) Begin(*runlog.Record) error             { return nil }
func (idle) Permit() error                          { return nil }
func (idle) End(context.Context, *tools.Set, error) {}

// TestAbandonedRun: a run that is ended because it cannot continue is closed, and its lock is free.
func TestAbandonedRun(t *testing.T) {
	t.Parallel()
	r, run := bench(t, runlog.Record{Engine: engine.Native, Subject: runlog.Subject{Kind: string(job.Routine), Job: "a", Name: "a"}})
	if err := run.Finish(runlog.Waiting, ""); err != nil {
		t.Fatal(err)
	}
	r.Host.Sealing.Mode = config.SealOff
	got, err := r.Abandon(t.Context(), Spec{Identity: Identity{Run: run.ID}, Origin: idle{}}, runlog.Expired, "no answer came", "It has ended.")
	if err != nil || got.Outcome != runlog.Expired || got.Error != "no answer came" || !lock.Free(r.Home.RunLock(run.ID)) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := errors.Join(os.RemoveAll(r.Home.Run(run.ID)), os.WriteFile(filepath.Clean(r.Home.Run(run.ID)), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Abandon(t.Context(), Spec{Identity: Identity{Run: run.ID}, Origin: idle{}}, runlog.Expired, "", ""); err == nil {
		t.Error("a run without files is ended")
	}
}
