package tick_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/tick"
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

// TestUnusableState: while no slot can be claimed or no run recorded, a tick starts no routine, fails with the path, and the owner is told once.
// A reminder, which needs no slot, starts all the same.
func TestUnusableState(t *testing.T) {
	for name, tells := range map[string]bool{"slots": true, "runs": true, "locks/ledger.lock": false} {
		c := newClock(t)
		c.tick()
		c.wait(time.Minute)
		c.routine("a", "* * * * *", "")
		c.tick()
		path, aside := c.home.State(name), c.home.Path("aside")
		_ = os.Rename(path, aside) // it may not be there yet
		if strings.HasSuffix(name, ".lock") {
			must(t, os.MkdirAll(path, 0o700))
		} else {
			c.write(path, "")
		}
		c.remind("passport", c.now, "")
		for i := range 3 {
			c.wait(time.Minute)
			c.started = nil
			if err := c.minute.Pass(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", name, err)
			}
			if i == 0 && !slices.Equal(c.started, []string{"passport"}) {
				t.Errorf("%s: started %q", name, c.started)
			}
			if actions, err := c.minute.Plan(t.Context()); err == nil || slices.ContainsFunc(actions, func(a tick.Action) bool { return a.Job == "a" }) {
				t.Errorf("%s: %+v, %v", name, actions, err)
			}
		}
		must(t, os.RemoveAll(path))
		_ = os.Rename(aside, path)
		if tells {
			c.tells("No routine can run: " + path + ": not a directory")
		}
		c.wait(time.Minute)
		if started := c.tick(); !slices.Contains(started, "a") {
			t.Errorf("%s: started %q", name, started)
		}
		if tells {
			c.tells("No routine can run: "+path+": not a directory", "The directory "+c.home.State()+" can be used again")
		}
	}
}

// TestUnreadableClaim: a tick that cannot read the claim of a due slot does not start the routine, and fails with its path.
func TestUnreadableClaim(t *testing.T) {
	c := newClock(t)
	c.tick()
	c.wait(time.Minute)
	c.routine("a", "* * * * *", "")
	c.routine("b", "* * * * *", "")
	path := c.home.State("slots", "a", c.now.Format("20060102T150405Z"))
	must(t, os.MkdirAll(path, 0o700))
	c.started = nil
	if err := c.minute.Pass(t.Context()); err == nil || !strings.Contains(err.Error(), path) || !slices.Equal(c.started, []string{"b"}) {
		t.Errorf("%v; started %q", err, c.started)
	}
	if actions, err := c.minute.Plan(t.Context()); err == nil || len(actions) != 1 || actions[0].Job != "b" {
		t.Errorf("%+v, %v", actions, err)
	}
}
