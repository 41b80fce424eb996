package tick_test

import (
	"os"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/approval"
	"github.com/ollim/ollim/internal/deliver"
	"github.com/ollim/ollim/internal/run"
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
	for id, want := range map[string]bool{old.ID: false, young.ID: true, dead.ID: true} {
		if _, err := c.minute.Firer.Runs.Load(id); (err == nil) != want {
			t.Errorf("%s: there: %v, want %v", id, err == nil, want)
		}
	}
	if r, err := c.minute.Firer.Runs.Load(dead.ID); err != nil || r.Outcome != run.Interrupted { // also one from long ago
		t.Errorf("the dead run is %q, %v", r.Outcome, err)
	}
}

// TestDrafts: what killed writers left goes after a day, and nothing else.
func TestDrafts(t *testing.T) {
	c := newClock(t)
	old, young := c.home.Path("state", ".x.tmp-1"), c.home.Path("routines", ".x.tmp-2")
	kept := []string{young, c.home.Path("state", "x.json"), c.home.Path("reminders", ".hidden"), c.home.Run("20260101T000000.000Z-abcdef", ".x.tmp-3")}
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
		_, known, err := c.minute.Firer.Approvals.Last(key)
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

// TestOrphans: a routine whose process died is told of, a reminder is not; of both the records are ended.
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
	for r, err := range c.minute.Firer.Runs.List() {
		if err != nil || r.Outcome != run.Interrupted {
			t.Errorf("%s: %q, %v", r.Name, r.Outcome, err)
		}
	}
}

// TestOutbox: messages that did not get through are tried again.
func TestOutbox(t *testing.T) {
	c := newClock(t)
	post := &c.minute.Firer.Post
	if fate, err := post.Send(t.Context(), deliver.Message{ID: "m.1", Kind: deliver.Ping, Text: "hello"}); err != nil || fate != deliver.Queued {
		t.Fatal(fate, err)
	}
	post.Command = []string{"/bin/sh", "-c", "cat > received"}
	c.tick()
	if got, err := os.ReadFile(c.home.Path("received")); err != nil || string(got) != "hello\n" {
		t.Errorf("%q, %v", got, err)
	}
}
