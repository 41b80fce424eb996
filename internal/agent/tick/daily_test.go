package tick_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// TestOncePerDay: what is done daily is done by the first tick of a day of the configured zone.
func TestOncePerDay(t *testing.T) {
	c := newClock(t)
	for _, step := range []struct {
		after time.Duration
		swept int
	}{{0, 1}, {time.Minute, 1}, {14*time.Hour + 58*time.Minute, 1}, {time.Minute, 2}, {time.Minute, 2}} {
		c.wait(step.after)
		c.tick()
		if c.swept != step.swept {
			t.Errorf("at %s: swept %d times, want %d", c.now, c.swept, step.swept)
		}
	}
}

// TestRemovalGoesOn: what agents have left is removed after everything that is due has been started, and no longer than the tick may take. The
// next tick goes on.
func TestRemovalGoesOn(t *testing.T) {
	c := newClock(t)
	cache := filepath.Join(t.TempDir(), "caches")
	c.minute.Runner.Host.Sealing.Cache = cache
	old := filepath.Join(cache, "routine-old")
	if err := errors.Join(os.MkdirAll(filepath.Join(old, "a", "b"), 0o700), os.Chtimes(old, c.now, c.now.AddDate(0, 0, -30))); err != nil {
		t.Fatal(err)
	}
	c.remind("a", c.now, "")
	ctx, stop := context.WithCancel(t.Context())
	start := c.minute.Start
	c.minute.Start = func(j job.Job) error {
		if _, err := os.Lstat(old); err != nil {
			t.Errorf("removed before what was due: %v", err)
		}
		stop() // as a signal does
		return start(j)
	}
	_ = c.minute.Pass(ctx)
	if _, err := os.Lstat(old); len(c.started) != 1 || err != nil {
		t.Errorf("started %q, and removed after the end of the tick's time: %v", c.started, err)
	}
	c.wait(time.Minute)
	c.tick()
	if _, err := os.Lstat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the next tick: %v", err)
	}
}

func TestPrune(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now.Add(1000*time.Hour*24), "")
	c.write(c.home.Path("routines", "r.md"), "---\nid: r\ncron: \"@yearly\"\nbackground: true\n---\nGo.\n")
	old := c.fire("r")
	c.wait(time.Hour)
	young := c.fire("r")
	dead := c.dies("a", false)
	c.wait(90*24*time.Hour - time.Minute)
	c.tick()
	if _, err := c.minute.Runner.Runs.Load(old.ID); err != nil {
		t.Errorf("removed by the first tick of all: %v", err)
	}
	c.wait(7 * 24 * time.Hour) // the clock has gone on
	c.tick()
	for id, want := range map[string]bool{old.ID: false, young.ID: true, dead.ID: true} {
		if _, err := c.minute.Runner.Runs.Load(id); (err == nil) != want {
			t.Errorf("%s: there: %v, want %v", id, err == nil, want)
		}
	}
	if r, err := c.minute.Runner.Runs.Load(dead.ID); err != nil || r.Outcome != runlog.Interrupted { // also one from long ago
		t.Errorf("the dead run is %q, %v", r.Outcome, err)
	}
}

// TestCannotPrune: what the first tick of a day cannot look through is an error.
func TestCannotPrune(t *testing.T) {
	for _, folder := range []func(paths.Dir) string{paths.Dir.Late, paths.Dir.Sessions} {
		c := newClock(t)
		c.tick()
		path := folder(c.home)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		c.write(path, "a file where the folder should be")
		c.wait(8 * 24 * time.Hour)
		if err := c.minute.Pass(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestWrongDate: ticks at a date that is a year ahead, or a year back, remove nothing; neither does a year without a tick. What is
// old is removed once the clock has gone on for a week.
func TestWrongDate(t *testing.T) {
	c := newClock(t)
	c.write(c.home.Path("routines", "r.md"), "---\nid: r\ncron: \"@yearly\"\nbackground: true\n---\nGo.\n")
	c.write(filepath.Join(c.home.Late(), "late.md"), "x")
	if err := os.Chtimes(filepath.Join(c.home.Late(), "late.md"), c.now, c.now); err != nil {
		t.Fatal(err)
	}
	if err := c.minute.Runner.Slots.Claim(slot.Claim{Job: "r", Slot: c.now, Outcome: "ok"}); err != nil {
		t.Fatal(err)
	}
	first := c.fire("r")
	there := func(want bool) {
		t.Helper()
		_, runErr := c.minute.Runner.Runs.Load(first.ID)
		_, lateErr := os.Stat(filepath.Join(c.home.Late(), "late.md"))
		slots := c.claimed("r")
		if (runErr == nil) != want || (lateErr == nil) != want || (len(slots) > 0) != want {
			t.Errorf("at %s: run %v, late reminder %v, slots %v; want them there: %v", c.now, runErr, lateErr, slots, want)
		}
	}
	at := c.now
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	for _, days := range []int{0, 1, 20, 40} { // ticks are rare on this machine
		for _, off := range []time.Duration{0, year, year + day, 0, -year, year, 0} {
			c.now = at.Add(time.Duration(days)*day + off)
			c.tick()
			there(true)
		}
	}
	c.now = at.Add(40*day + year) // it was off for a year
	c.tick()
	there(true)
	c.wait(7*day - time.Minute)
	c.tick()
	there(true)
	c.wait(time.Minute + day)
	c.tick()
	there(false)
}

// TestLeftOvers: what killed processes left goes after a day: directories of runs without a record, and the locks of jobs that are gone
// and of their sessions. Nothing goes that is younger, held, or of a job that is there.
func TestLeftOvers(t *testing.T) {
	c := newClock(t)
	c.remind("here", c.now.Add(1000*time.Hour), "")
	paths := map[string]bool{ // by whether it stays
		c.home.Run("20260301T000000.000Z-abcdef", ".run.json.tmp-1"): false,
		c.home.Run("20260301T000000.000Z-abcde0"):                    false,
		c.home.Run("20260301T000000.000Z-aaaaaa", "run.json"):        true,
		c.home.Run("20260302T000000.000Z-abcde1"):                    true, // young
		c.home.JobLock("gone"):                                       false,
		c.home.JobLock("young"):                                      true,
		c.home.JobLock("held"):                                       true,
		c.home.JobLock("here"):                                       true,
		c.home.SessionLock("gone"):                                   false,
		c.home.SessionLock(""):                                       true,
		c.home.Lock("job"):                                           true,
		c.home.Lock("updates-1"):                                     true,
	}
	for path := range paths {
		if filepath.Ext(path) == "" || strings.HasPrefix(filepath.Base(path), "2026") {
			if err := store.MkdirAll(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		c.write(path, "")
	}
	guard, err := lock.TryGuard(c.home.JobLock("held"))
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Release()
	for _, dir := range []string{c.home.Runs(), c.home.Locks()} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			age := 25 * time.Hour
			if strings.Contains(path, "young") || strings.Contains(path, "abcde1") {
				age = 23 * time.Hour
			}
			return errors.Join(err, os.Chtimes(path, c.now.Add(-age), c.now.Add(-age)))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c.write(c.home.Path("reminders", "bad.md"), "---\nid: [\n---\n") // it may be any of those that are gone
	c.tick()
	if _, err := os.Stat(c.home.JobLock("gone")); err != nil {
		t.Errorf("removed while a file cannot be read: %v", err)
	}
	if err := os.Remove(c.home.Path("reminders", "bad.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.home.State("tick.json")); err != nil { // as on another day
		t.Fatal(err)
	}
	c.tick()
	for path, stays := range paths {
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v, want it there: %v", path, err, stays)
		}
	}
}

// TestDrafts: what killed writers left goes after a day, and nothing else.
func TestDrafts(t *testing.T) {
	c := newClock(t)
	old, young := c.home.Path("state", ".x.tmp-1"), c.home.Path("routines", ".x.tmp-2")
	kept := []string{young, c.home.Path("state", "x.json"), c.home.Path("reminders", ".hidden"), c.home.Run("20260301T000000.000Z-abcdef", ".x.tmp-3")}
	for _, path := range append(kept, old) {
		c.write(path, "x")
	}
	for _, path := range append(kept, old) {
		age := 25 * time.Hour
		if path == young {
			age = 23 * time.Hour
		}
		if err := os.Chtimes(path, c.now.Add(-age), c.now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	c.tick()
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", old, err)
	}
	for _, path := range kept {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestForgetApprovals: those of jobs that are gone, but none while any file cannot be read: it may be the one.
func TestForgetApprovals(t *testing.T) {
	c := newClock(t)
	later := c.now.Add(1000 * time.Hour)
	for _, id := range []string{"a", "b"} {
		c.remind(id, later, "allowed-tools: [WebFetch]\n")
		c.approve(id, approval.Owner)
	}
	known := func(key string) bool {
		_, known, err := c.minute.Runner.Approvals.Last(key)
		if err != nil {
			t.Fatal(err)
		}
		return known
	}
	c.write(c.home.Path("reminders", "b.md"), "---\nid: [\n---\n")
	c.tick()
	if !known("a") || !known("b") {
		t.Error("forgotten while a file cannot be read")
	}
	if err := os.Remove(c.home.Path("reminders", "b.md")); err != nil {
		t.Fatal(err)
	}
	c.wait(24 * time.Hour)
	c.tick()
	if !known("a") || known("b") {
		t.Errorf("a %v, b %v: want a only", known("a"), known("b"))
	}
}

// TestOrphans: a routine whose process died is notified of, a reminder is not; of both the records are ended.
func TestOrphans(t *testing.T) {
	c := newClock(t)
	c.tick() // the daily work is done
	c.write(c.home.Path("routines", "r.md"), "---\nid: r\ncron: \"@yearly\"\n---\nGo.\n")
	c.remind("a", c.now.Add(time.Hour), "")
	c.dies("r", false)
	c.dies("a", true)
	c.wait(time.Minute)
	for range 2 {
		c.tick()
		c.tells("r was cut off before it ended: the process ended before the run did")
	}
	for r, err := range c.minute.Runner.Runs.List() {
		if err != nil || r.Outcome != runlog.Interrupted {
			t.Errorf("%s: %q, %v", r.Name, r.Outcome, err)
		}
	}
}

// TestOutbox: messages that did not get through are tried again.
func TestOutbox(t *testing.T) {
	c := newClock(t)
	post := &c.minute.Runner.Outbox
	if receipt, err := post.Send(t.Context(), outbox.Message{ID: "m.1", Kind: outbox.Ping, Text: "hello"}); err != nil || receipt.Fate != outbox.Queued {
		t.Fatal(receipt, err)
	}
	post.Command = []string{"/bin/sh", "-c", "cat > received"}
	c.tick()
	if got, err := os.ReadFile(c.home.Path("received")); err != nil || string(got) != "hello\n" {
		t.Errorf("%q, %v", got, err)
	}
}
