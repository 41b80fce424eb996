package fire

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/payload"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
)

// hooks is a fixture with webhooks and their inbox.
type hooks struct {
	*fixture
	receiver *inbox.Receiver
	prompts  []string // that the engine was given
	events   int
}

func newHooks(t *testing.T, ids ...string) *hooks {
	t.Helper()
	h := &hooks{}
	h.fixture = newFixture(t, runtest.Turn(func(r engine.Request) error {
		h.prompts = append(h.prompts, r.Input.Prompt)
		return nil
	}), time.Hour)
	h.Inbox = inbox.Book{
		Home: h.Home, Disk: h.Disk, Zone: time.UTC, Limits: inbox.LimitsOf(100, 2), Runs: h.Runs.After,
		NewRun: func() (string, error) { return runlog.NewID(h.now, h.Random) },
	}
	for _, id := range ids {
		h.hook(id, "rate-limit: 1000/m")
	}
	r, err := h.Inbox.Receive()
	if err != nil {
		t.Fatal(err)
	}
	h.receiver = r
	t.Cleanup(r.Close)
	return h
}

// hook writes a webhook's file.
func (h *hooks) hook(id, more string) {
	h.t.Helper()
	text := "---\nid: " + id + "\nisolated: true\nallow-ping: false\nupdate-main-session: blocked\n" + more +
		"\nfields:\n  properties:\n    n: {type: integer}\n---\nLook at {n}.\n"
	if err := store.Replace(h.Home.Path("webhooks", id+".md"), []byte(text)); err != nil {
		h.t.Fatal(err)
	}
}

// accept adds an event to the inbox, and returns its run. Its value is its number.
func (h *hooks) accept(hook string) string {
	h.t.Helper()
	h.events++
	h.now = h.now.Add(time.Millisecond)
	n := fmt.Sprint(h.events)
	e := inbox.Entry{Hook: hook, Delivery: n, Hash: n, Data: []payload.Datum{{Key: "n", Value: json.RawMessage(n)}}}
	run, _, err := h.receiver.Add(h.t.Context(), e)
	if err != nil {
		h.t.Fatal(err)
	}
	return run
}

// start starts what can start, and returns the runs. The processes end at once.
func (h *hooks) start() (runs []string, again time.Duration) {
	h.t.Helper()
	again, err := Entries{h.Runner}.Start(h.t.Context(), func(run string) (process.ID, error) {
		runs = append(runs, run)
		return process.ID{PID: 1 << 30}, nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return runs, again
}

// starts expects exactly these runs to be started.
func (h *hooks) starts(want ...string) {
	h.t.Helper()
	plan, err := Entries{h.Runner}.Plan(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	var planned []string
	for _, e := range plan {
		planned = append(planned, e.Run)
	}
	if runs, _ := h.start(); !slices.Equal(runs, want) || !slices.Equal(planned, want) {
		h.t.Errorf("started %q, planned %q, want %q", runs, planned, want)
	}
}

// answers runs an entry, and expects its record to end so. n is the value that its prompt has.
func (h *hooks) answers(run string, outcome runlog.Outcome, n int) {
	h.t.Helper()
	r, err := New(h.Runner).FireEntry(h.t.Context(), run, Options{})
	if r.ID != run || r.Outcome != outcome || r.Kind != "webhook" || h.Inbox.Waits(run) {
		h.t.Errorf("%s: %+v, %v", run, r, err)
	}
	if n > 0 && !strings.Contains(h.prompts[len(h.prompts)-1], fmt.Sprintf("\n- n: %d\n", n)) {
		h.t.Errorf("%s: prompt %q", run, h.prompts[len(h.prompts)-1])
	}
}

// stays expects an entry not to run for a reason, and to leave no record.
func (h *hooks) stays(run string, want error) {
	h.t.Helper()
	r, err := New(h.Runner).FireEntry(h.t.Context(), run, Options{})
	if r.ID != "" || !errors.Is(err, want) || !h.Inbox.Waits(run) {
		h.t.Errorf("%s: %+v, %v", run, r, err)
	}
	if _, err := os.Stat(h.Home.Run(run, "run.json")); !errors.Is(err, os.ErrNotExist) {
		h.t.Errorf("%s has a record: %v", run, err)
	}
}

// TestEntriesRunOnce: each event is run once, with its data, in the order of arrival.
func TestEntriesRunOnce(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "ci")
	first, second := h.accept("ci"), h.accept("ci")
	h.stays(second, ErrNotNext)
	h.answers(first, runlog.OK, 1)
	h.answers(second, runlog.OK, 2)
	for _, run := range []string{first, second} {
		if r, err := New(h.Runner).FireEntry(t.Context(), run, Options{}); r.ID != "" || !errors.Is(err, inbox.ErrGone) {
			t.Errorf("again: %+v, %v", r, err)
		}
	}
	if n := len(h.records()); n != 2 || len(h.prompts) != 2 {
		t.Errorf("%d records, %d prompts", n, len(h.prompts))
	}
}

// TestEntryWaitsForTheJob: an event waits while the webhook runs, instead of being skipped.
func TestEntryWaitsForTheJob(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "ci")
	run := h.accept("ci")
	guard, err := lock.TryGuard(h.Home.JobLock("ci"))
	if err != nil {
		t.Fatal(err)
	}
	h.starts()
	done := make(chan runlog.Record)
	go func() {
		r, _ := New(h.Runner).FireEntry(t.Context(), run, Options{})
		done <- r
	}()
	guard.Release()
	if r := <-done; r.Outcome != runlog.OK {
		t.Errorf("%+v", r)
	}
}

// TestStarts: one run of a webhook at a time, so many webhooks at once, the oldest event first, and a process that died before its run
// began is replaced after a while.
func TestStarts(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "a1", "b1", "c1")
	if runs, again := h.start(); len(runs) > 0 || again != 0 {
		t.Errorf("an empty inbox: %q, %s", runs, again)
	}
	c := h.accept("c1")
	a, next := h.accept("a1"), h.accept("a1")
	b := h.accept("b1")
	h.starts(c, a)
	h.starts(b) // the others were started just now
	if runs, again := h.start(); len(runs) > 0 || again <= 0 || again > 100*time.Millisecond {
		t.Errorf("%q, again in %s", runs, again)
	}
	h.now = h.now.Add(time.Second)
	h.starts(c, a)
	h.now = h.now.Add(150 * time.Millisecond)
	h.starts(b) // the others wait longer the second time
	h.answers(a, runlog.OK, 2)
	h.starts(next)
}

// TestPendingStart: an event is not started again while the process that was started for it lives.
func TestPendingStart(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "ci")
	h.accept("ci")
	starts := 0
	for range 3 {
		if _, err := (Entries{h.Runner}).Start(t.Context(), func(string) (process.ID, error) { starts++; return process.Self(), nil }); err != nil {
			t.Fatal(err)
		}
		h.now = h.now.Add(time.Hour)
	}
	if starts != 1 {
		t.Errorf("%d starts", starts)
	}
}

// TestStartsAreNotedFirst: nothing is started where that cannot be noted, as on a full disk: it would be started again at once.
func TestStartsAreNotedFirst(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "ci")
	run := h.accept("ci")
	must(t, h.Inbox.NoteStarts("ci", inbox.Starts{}))
	blocked, err := filepath.Glob(h.Home.State("inbox", "ci", "*starts*"))
	if err != nil || len(blocked) != 1 {
		t.Fatal(blocked, err)
	}
	must(t, os.Remove(blocked[0]))
	must(t, os.MkdirAll(filepath.Join(blocked[0], "x"), 0o700))
	_, err = Entries{h.Runner}.Start(t.Context(), func(string) (process.ID, error) { t.Error("a process was started"); return process.ID{}, nil })
	if err == nil {
		t.Error("no error")
	}
	must(t, os.RemoveAll(blocked[0]))
	h.starts(run)
}

// TestRateLimit: the limit is on starts, and counts those of earlier processes.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	h.hook("ci", "rate-limit: 2/m")
	var runs []string
	for range 5 {
		runs = append(runs, h.accept("ci"))
	}
	for i, run := range runs {
		if i > 0 && i%2 == 0 {
			got, again := h.start()
			if len(got) > 0 || again > time.Minute || again < 59*time.Second {
				t.Errorf("%d: %q, again in %s", i, got, again)
			}
			h.now = h.now.Add(again)
		}
		h.starts(run)
		h.answers(run, runlog.OK, i+1)
	}
}

// errLater stands for any *Later.
var errLater = errors.New("later")

// TestHeldEntries: while the webhook may not run, its events wait and leave no record; the owner is notified of what only the owner can
// change.
func TestHeldEntries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hold, free func(h *hooks)
		err        error
		starts     bool // a process is started all the same, and finds out
		report     string
	}{
		"pause": {
			hold: func(h *hooks) { must(h.t, h.Spend.Pause(h.t.Context(), time.Time{})) },
			free: func(h *hooks) { must(h.t, h.Spend.Resume(h.t.Context())) },
			err:  run.ErrPaused,
		},
		"spending limit": {
			hold:   func(h *hooks) { must(h.t, h.Spend.Settle(h.t.Context(), "another", 5)) },
			free:   func(h *hooks) { h.Spend.Limits.PerDay = 10 },
			err:    errLater,
			starts: true,
			report: "No automatic run starts: limit per-day: 5.00 spent of 5.00 USD, until 2026-03-03T00:00:00Z",
		},
		"approval": {
			hold:   func(h *hooks) { h.hook("ci", "allowed-tools: [\"Bash(rm *)\"]") },
			free:   func(h *hooks) { h.hook("ci", "") },
			err:    run.ErrRefused,
			report: "approve",
		},
		"no engine": {
			hold:   func(h *hooks) { h.Settings.Engine = "" },
			free:   func(h *hooks) { h.Settings.Engine = "costly" },
			err:    run.ErrNoEngine,
			report: "no engine",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHooks(t, "ci")
			event := h.accept("ci")
			c.hold(h)
			for range 2 {
				r, err := New(h.Runner).FireEntry(t.Context(), event, Options{})
				if later := new(run.Later); errors.As(err, &later) {
					err = errLater
				}
				if r.ID != "" || !errors.Is(err, c.err) {
					t.Errorf("%+v, %v", r, err)
				}
			}
			if started, again := h.start(); (len(started) > 0) != c.starts || again <= 0 || again > time.Minute {
				t.Errorf("started %q, again in %s", started, again)
			}
			pending, err := h.Updates.Peek(t.Context())
			if err != nil || (c.report != "") != (len(pending) == 1) || c.report != "" && !strings.Contains(pending[0].Message, c.report) {
				t.Errorf("reported %+v, %v", pending, err)
			}
			if n := len(h.records()); n > 0 || !h.Inbox.Waits(event) {
				t.Errorf("%d records", n)
			}
			c.free(h)
			h.answers(event, runlog.OK, 1)
		})
	}
}

// TestRefusedEntry: an event whose webhook cannot event as it is written has a record that says why.
func TestRefusedEntry(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "ci")
	run := h.accept("ci")
	h.Engines = func(string) (engine.Engine, error) { return nil, errors.New("the engine is broken") }
	h.answers(run, runlog.Failed, 0)
	h.starts()
}

// TestKilledBeforeTheRun: a process that died before its run had any effect leaves the event to the next one, whatever else it left.
func TestKilledBeforeTheRun(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]func(h *hooks, dead runlog.Record){
		"an empty directory": func(h *hooks, dead runlog.Record) { must(h.t, os.MkdirAll(h.Home.Run(dead.ID), 0o700)) },
		"a record": func(h *hooks, dead runlog.Record) {
			_, err := h.Runs.Open(dead)
			must(h.t, err)
		},
		"a reservation": func(h *hooks, dead runlog.Record) {
			h.reserve(dead)
			_, err := h.Runs.Open(dead)
			must(h.t, err)
		},
		"a reservation that was settled": func(h *hooks, dead runlog.Record) {
			h.reserve(dead)
			_, err := h.Runs.Open(dead)
			must(h.t, err)
			must(h.t, h.Spend.Settle(h.t.Context(), dead.ID, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHooks(t, "ci")
			run := h.accept("ci")
			left(h, runlog.Record{ID: run, Subject: runlog.Subject{Kind: "webhook", Job: "ci", Name: "ci"}, Started: h.now, Process: runlog.Process{ID: process.ID{PID: 1 << 30}}})
			must(t, os.WriteFile(h.Home.JobLock("ci"), []byte(run+"\n"), 0o600))
			Slots{h.Runner}.EndOrphans(t.Context(), time.Time{}, time.Time{})
			h.answers(run, runlog.OK, 1)
			if totals, err := h.Spend.Totals(); err != nil || totals.Runs != 1 {
				t.Errorf("%+v, %v", totals, err)
			}
		})
	}
}

// TestKilledInTheRun: a run that has its event is never started again; its record says that it was interrupted.
func TestKilledInTheRun(t *testing.T) {
	t.Parallel()
	for _, byTick := range []bool{true, false} {
		h := newHooks(t, "ci")
		dead, next := h.accept("ci"), h.accept("ci")
		e, _, err := h.Inbox.First("ci")
		must(t, err)
		_, err = h.Runs.Open(runlog.Record{ID: dead, Subject: runlog.Subject{Kind: "webhook", Job: "ci", Name: "ci"}, Started: h.now, Process: runlog.Process{ID: process.ID{PID: 1 << 30}}})
		must(t, err)
		must(t, h.Inbox.Claim(e))
		must(t, os.WriteFile(h.Home.JobLock("ci"), []byte(dead+"\n"), 0o600))
		if byTick {
			Slots{h.Runner}.EndOrphans(t.Context(), time.Time{}, time.Time{})
		}
		h.starts(next)
		h.answers(next, runlog.OK, 2)
		if r, err := h.Runs.Load(dead); err != nil || r.Outcome != runlog.Interrupted {
			t.Errorf("%+v, %v", r, err)
		}
		pending, err := h.Updates.Peek(t.Context())
		if err != nil || len(pending) != 2 || !strings.Contains(pending[0].Message, "cut off") || !strings.Contains(pending[1].Message, "ci works again") {
			t.Errorf("reported %+v, %v", pending, err)
		}
	}
}

// reserve sets aside money for a run.
func (h *hooks) reserve(r runlog.Record) {
	h.t.Helper()
	_, err := h.Spend.Reserve(h.t.Context(), spend.Claim{Run: r.ID}, nil)
	must(h.t, err)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestEndedWithItsEntry: a run that was refused, and whose process died before it took its entry, is not started again.
func TestEndedWithItsEntry(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "ci")
	run, next := h.accept("ci"), h.accept("ci")
	r, err := h.Runs.Open(runlog.Record{ID: run, Subject: runlog.Subject{Kind: "webhook", Job: "ci", Name: "ci"}, Started: h.now, Process: runlog.Process{ID: process.ID{PID: 1 << 30}}})
	must(t, err)
	must(t, r.Finish(runlog.Refused, "no"))
	h.starts(run)
	h.answers(run, runlog.Refused, 0)
	if len(h.prompts) > 0 {
		t.Errorf("prompts %q", h.prompts)
	}
	h.starts(next)
	h.answers(next, runlog.OK, 2)
}

// TestUnreadableEntry: an entry that cannot be read is an error, and holds up its own webhook only.
func TestUnreadableEntry(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "broken", "ci")
	h.accept("broken")
	run := h.accept("ci")
	must(t, os.Mkdir(h.Home.State("inbox", "broken", "0000000000001-x.json"), 0o700))
	var started []string
	_, err := Entries{h.Runner}.Start(t.Context(), func(run string) (process.ID, error) {
		started = append(started, run)
		return process.ID{PID: 1 << 30}, nil
	})
	if err == nil || !slices.Equal(started, []string{run}) {
		t.Errorf("%q, %v", started, err)
	}
}

// TestGoneHook: the owner is notified once that events wait for a webhook without a file, and again after it was back. A file that
// cannot be read may be the one.
func TestGoneHook(t *testing.T) {
	t.Parallel()
	h := newHooks(t, "ci")
	run := h.accept("ci")
	file := h.Home.Path("webhooks", "ci.md")
	reported := func() (n int) {
		h.starts()
		pending, err := h.Updates.Peek(t.Context())
		must(t, err)
		for _, u := range pending {
			if strings.Contains(u.Message, "webhook ci wait, but its file no longer exists") {
				n++
			}
		}
		return n
	}
	must(t, store.Replace(file, []byte("---\nid: [\n")))
	if n := reported(); n != 0 {
		t.Errorf("the file cannot be read, reported %d times", n)
	}
	for times := range 2 {
		must(t, os.Remove(file))
		for range 2 {
			if n := reported(); n != times+1 {
				t.Errorf("gone for the %d. time, reported %d times", times+1, n)
			}
		}
		h.hook("ci", "")
		h.answers(run, runlog.OK, h.events)
		run = h.accept("ci")
	}
}
