package tick_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/job"
)

// crowd has 12 routines, due at 9:00 and 9:01, of which 3 may run at once. drained counts the calls of Drain.
func crowd(t *testing.T) (c *clock, drained *int) {
	t.Helper()
	c, drained = newClock(t), new(int)
	c.minute.Parallel, c.minute.Drain = func([]job.Job) int { return 3 }, func() error { *drained++; return nil }
	for i := range 12 {
		c.routine(fmt.Sprintf("r%02d", i), fmt.Sprintf("%d 9 * * *", (i+1)%2), "")
	}
	return c, drained
}

func (c *clock) queue() (list []string) {
	c.t.Helper()
	waiting, err := tick.Queued(c.minute.Runner.Disk, c.home)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, w := range waiting {
		if !fire.New(c.minute.Runner).Slots.Unanswered(w.Job, w.Slot) {
			continue
		}
		list = append(list, w.Slot.Format("15:04 ")+w.Job)
	}
	return list
}

// TestParallel: what is due beyond the limit waits in the order of the slots, and is not missed, however long that takes.
func TestParallel(t *testing.T) {
	c, drained := crowd(t)
	c.wait(-time.Second)
	c.starts()
	c.wait(61 * time.Second)
	c.starts()
	want := []string{"09:00 r01", "09:00 r03", "09:00 r05", "09:00 r07", "09:00 r09", "09:00 r11", "09:01 r00", "09:01 r02", "09:01 r04", "09:01 r06", "09:01 r08", "09:01 r10"}
	if got := c.queue(); !slices.Equal(got, want) || *drained != 1 {
		t.Errorf("%q wait, want %q; %d starters, want 1", got, want, *drained)
	}
	for _, id := range []string{"r01", "r03", "r05"} {
		c.answer(id, time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	}
	want = want[3:]
	for range 40 { // nothing starts them
		c.wait(time.Minute)
		c.starts()
	}
	if got := c.queue(); !slices.Equal(got, want) || *drained != 41 {
		t.Errorf("later %q wait, want %q; %d starters, want one at each tick", got, want, *drained)
	}
	c.answer("r07", time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	if err := os.Remove(c.home.Path("routines", "r09.md")); err != nil {
		t.Fatal(err)
	}
	c.wait(time.Minute)
	c.starts()
	if got := c.queue(); !slices.Equal(got, want[2:]) {
		t.Errorf("%q wait, want %q", got, want[2:])
	}
	c.slots("r09", "09:00 missed")
	c.answer("r11", time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	for i := range 6 {
		c.answer(fmt.Sprintf("r%02d", 2*i), time.Date(2026, 3, 2, 9, 1, 0, 0, time.UTC))
	}
	before := *drained
	for range 20 {
		c.wait(time.Minute)
		c.starts()
	}
	if got := c.queue(); len(got) != 0 || *drained != before {
		t.Errorf("%q wait, %d starters more", got, *drained-before)
	}
	c.slots("r00", "09:01 ok")
	c.slots("r07", "09:00 ok")
	if got := c.unaccounted(); got != nil {
		t.Errorf("unaccounted: %q", got)
	}
}

// TestParallelCountsRuns: the runs in progress count, whoever has started them.
func TestParallelCountsRuns(t *testing.T) {
	for most, waiting := range map[int]int{8: 0, 7: 6} {
		c, _ := crowd(t)
		c.minute.Parallel = func([]job.Job) int { return most }
		c.wait(30 * time.Second)
		for _, id := range []string{"r00", "r02"} {
			guard, err := lock.TryGuard(c.home.JobLock(id))
			if err != nil {
				t.Fatal(err)
			}
			defer guard.Release()
		}
		if got := c.tick(); len(got)+waiting != 6 || len(c.queue()) != waiting {
			t.Errorf("limit %d: started %q, %q wait, want %d", most, got, c.queue(), waiting)
		}
	}
}

// TestWaitingThatCannotBeMissed: a slot that cannot be noted as missed is noted by a later tick.
func TestWaitingThatCannotBeMissed(t *testing.T) {
	c, _ := crowd(t)
	c.wait(-time.Second)
	c.starts()
	for range 60 {
		c.wait(time.Minute)
		c.starts()
	}
	blocked := filepath.Join(c.home.Slots(), "r09")
	if err := errors.Join(os.Remove(c.home.Path("routines", "r09.md")), os.MkdirAll(c.home.Slots(), 0o700), os.WriteFile(blocked, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	c.wait(time.Minute)
	if err := c.minute.Pass(t.Context()); err == nil {
		t.Error("no error")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	c.wait(time.Minute)
	c.starts()
	c.slots("r09", "09:00 missed")
}
