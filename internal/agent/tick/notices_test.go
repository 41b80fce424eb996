package tick_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
)

// TestDiskFull: the owner is told that the disk is full when less than the bound is free, and that it has space again.
func TestDiskFull(t *testing.T) {
	c := newClock(t)
	free := uint64(notify.FewBytes)
	c.minute.Space = func(dir string) (uint64, error) {
		if dir != c.home.State() {
			t.Errorf("looked at %s", dir)
		}
		return free, nil
	}
	c.tick()
	c.tells()
	free--
	c.tick()
	full := "The disk is full: 49 MiB are free in " + string(c.home) + ", so runs cannot be recorded"
	c.tells(full)
	c.wait(time.Minute)
	free = 0
	c.tick()
	c.tells(full)
	free = notify.FewBytes
	c.tick()
	c.tells(full, "The disk has space again")
	c.wait(3 * time.Hour)
	c.tick()
	if !c.minute.Runner.Notices.Empty() {
		t.Error("the cause is not forgotten")
	}
}

// TestPauseEnds: a pause that has an end ends with the first tick after it, which says once what was held.
func TestPauseEnds(t *testing.T) {
	c := newClock(t)
	c.tick()
	c.wait(30 * time.Minute)
	c.routine("a", "0 * * * *", "")
	c.tick()
	if err := c.minute.Runner.Spend.Pause(t.Context(), c.now.Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for range 119 {
		c.wait(time.Minute)
		c.starts()
	}
	c.remind("passport", c.now.Add(-time.Hour), "description: Passport\n")
	c.starts()
	c.tells()
	c.wait(time.Minute)
	c.starts("passport")
	const over = "The pause is over. Not run: 2 slots (a 2). Due now: 1 reminder (Passport)"
	c.tells(over)
	if paused, _, err := c.minute.Runner.Spend.Paused(); paused || err != nil {
		t.Error(paused, err)
	}
	c.wait(3 * time.Minute)
	c.tick()
	c.tells(over)
	if strings.Contains(strings.Join(c.updates(), "\n"), "missed") {
		t.Errorf("%q", c.updates())
	}
}
