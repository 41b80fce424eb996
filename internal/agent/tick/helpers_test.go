package tick_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
	"github.com/ollim/ollim/internal/testkit"
)

// fake is an engine that answers, or fails.
type fake struct{ err error }

func (e *fake) Run(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) (engine.Result, error) {
	for _, event := range []runlog.Event{{Type: runlog.Session, Session: "s"}, {Type: runlog.UsageEvent, Usage: &runlog.Usage{}}} {
		if err := sink(event); err != nil {
			return engine.Result{}, err
		}
	}
	return engine.Result{Session: "s"}, e.err
}

func (*fake) Plan(engine.Request, engine.Tools) (engine.Plan, error) { return engine.Plan{}, nil }
func (*fake) Compact(context.Context, engine.Request, string, engine.Sink) (engine.Compaction, error) {
	return engine.Compaction{}, errors.New("not asked for")
}

// clock is a data directory whose time the test sets, and what its ticks have started.
type clock struct {
	t      *testing.T
	now    time.Time
	step   time.Duration // by which each look at the clock moves it
	home   paths.Dir
	engine *fake
	minute tick.Minute

	mu      sync.Mutex
	started []string
	swept   int
}

// look returns the time, which each look moves by a step.
func (c *clock) look() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(c.step)
	return c.now
}

func newClock(t *testing.T) *clock {
	t.Helper()
	c := &clock{t: t, now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), home: paths.Dir(testkit.MemoryDir(t)), engine: &fake{}}
	disk := store.Disk{Now: c.look, Warn: func(message string) { t.Log(message) }}
	stores := state.Of(c.home, disk, time.UTC)
	stores.Spend.Limits = spend.Limits{PerRun: 1, PerDay: 5, PerMonth: 50, RunsPerDay: 500}
	stores.Spend.Past = func(time.Time) ([]spend.Past, error) { return nil, nil }
	stores.Inbox.Limits, stores.Inbox.Runs = inbox.LimitsOf(100, 2), stores.Runs.After
	c.minute = tick.Minute{
		Keep: 90,
		Runner: &run.Runner{
			Home: c.home, Disk: disk, Zone: time.UTC, Random: rand.Reader, Stores: stores, Settings: run.Settings{Engine: "fake"},
			Host: run.Host{
				Process: func() runlog.Process { return runlog.Process{ID: process.Self()} },
				Sleep:   func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
				Sealing: run.Sealing{Mode: config.SealOff, Temp: c.home.Path("..", "no-tmp"), Cache: c.home.Path("..", "no-cache")},
			},
			Outbox:  outbox.Post{Home: c.home, Disk: disk},
			Engines: func(string) (engine.Engine, error) { return c.engine, nil },
		},
		Start:     func(j job.Job) error { return c.start(j.ID) },
		StartLate: func(j job.Job, at time.Time) error { return c.start(j.ID + " for " + at.Format("15:04")) },
		Sweep:     func(context.Context) error { c.swept++; return nil },
		Bill:      func(context.Context) error { return nil },
	}
	return c
}

func (c *clock) write(path, text string) {
	c.t.Helper()
	if err := store.Replace(path, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clock) start(what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = append(c.started, what)
	return nil
}

// remind writes a reminder that is due at an instant; more is further lines of its frontmatter.
func (c *clock) remind(id string, at time.Time, more string) {
	c.t.Helper()
	c.write(c.home.Path("reminders", id+".md"), reminder(id, at, more))
}

func reminder(id string, at time.Time, more string) string {
	return fmt.Sprintf("---\nid: %s\nrun-at: %s\n%s---\nDo %s.\n", id, at.Format(time.RFC3339), more, id)
}

// tick is one minute's work; it returns what was started, in order.
func (c *clock) tick() []string {
	c.t.Helper()
	c.started = nil
	if err := c.minute.Pass(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	return c.started
}

// starts wants exactly these to be started by a tick.
func (c *clock) starts(ids ...string) {
	c.t.Helper()
	if got := c.tick(); !slices.Equal(got, ids) {
		c.t.Errorf("at %s: started %q, want %q", c.now.Format("15:04:05"), got, ids)
	}
}

// fire runs a job, as the process that a tick starts does.
func (c *clock) fire(id string) runlog.Record {
	c.t.Helper()
	r, _ := fire.New(c.minute.Runner).Fire(c.t.Context(), id, fire.Options{})
	if r.ID == "" {
		c.t.Fatalf("fire %s: no record", id)
	}
	return r
}

func (c *clock) wait(d time.Duration) { c.now = c.now.Add(d) }

func (c *clock) updates() (list []string) {
	c.t.Helper()
	updates, err := c.minute.Runner.Updates.Peek(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, u := range updates {
		list = append(list, u.Message)
	}
	return list
}

// files names the reminders that are there, those that are being fired with firing/ before them.
func (c *clock) files() (names []string) {
	c.t.Helper()
	for prefix, dir := range map[string]string{"": c.home.Reminders(), "firing/": c.home.Firing()} {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			c.t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, prefix+e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// has wants exactly these files of reminders.
func (c *clock) has(names ...string) {
	c.t.Helper()
	if got := c.files(); !slices.Equal(got, names) {
		c.t.Errorf("files %q, want %q", got, names)
	}
}

// tells wants exactly these updates to wait.
func (c *clock) tells(messages ...string) {
	c.t.Helper()
	got := c.updates()
	for i, text := range got {
		got[i], _, _ = strings.Cut(text, "\nTo do: ") // package notify tests it
	}
	if !slices.Equal(got, messages) {
		c.t.Errorf("updates %q, want %q", got, messages)
	}
}

// dies begins a run of a job in a process that is killed.
func (c *clock) dies(id string, claimed bool) runlog.Record {
	c.t.Helper()
	f := c.minute.Runner
	files, err := f.Jobs.Load()
	if err != nil {
		c.t.Fatal(err)
	}
	j, err := files.Find(id)
	if err != nil {
		c.t.Fatal(err)
	}
	runID, err := runlog.NewID(c.now, rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(f.Home.JobLock(id), runID+"\n")
	r, err := f.Runs.Open(runlog.Record{ID: runID, Subject: runlog.Subject{Kind: string(j.Kind), Job: id, Name: j.Name()}, Started: c.now, Process: runlog.Process{ID: process.ID{PID: 1 << 30}}})
	if err != nil {
		c.t.Fatal(err)
	}
	if claimed {
		if _, err := f.Jobs.Claim(j); err != nil {
			c.t.Fatal(err)
		}
	}
	return r.Record
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
