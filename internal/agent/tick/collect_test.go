package tick_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

// TestOverdueBoundary: to the second after 24 hours it is run, then told of.
func TestOverdueBoundary(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now.Add(-24*time.Hour), "")
	c.remind("b", c.now.Add(-24*time.Hour-time.Second), "description: The b\n")
	c.plans("collect b", "start a")
	c.starts("a")
	c.has("a.md")
	c.tells("These reminders were due more than 24 hours ago and were not run (they are kept in state/late):\n- 2026-03-01 Sun 8:59 AM (1 day ago): The b")
}

// TestCollectedAtAWrongDate: what was collected at a wrong date is set again by the first tick that knows better, with what the owner approved for
// it. What was overdue in truth stays, and nothing takes the place of another file.
func TestCollectedAtAWrongDate(t *testing.T) {
	c := newClock(t)
	truth := c.now
	c.remind("month", truth.Add(30*24*time.Hour), "")
	c.remind("soon", truth.Add(2*time.Minute), "description: The soon\nallowed-tools: [\"Bash(date)\"]\n")
	c.remind("taken", truth.Add(time.Hour), "")
	c.remind("past", truth.Add(-48*time.Hour), "")
	want, err := os.ReadFile(c.home.Path("reminders", "soon.md"))
	if err != nil {
		t.Fatal(err)
	}
	c.approve("soon", approval.Owner)
	c.now = truth.AddDate(4, 0, 0)
	c.starts()
	c.has()
	c.remind("taken", truth.Add(3*time.Hour), "")
	collected := c.updates()
	c.now = truth.Add(time.Minute)
	c.plans("restore soon", "restore month")
	c.starts()
	c.has("month.md", "soon.md", "taken.md")
	c.tells(append(collected, "These reminders were reported as overdue while the system date was wrong; they are set again:\n"+
		"- 2026-03-02 Mon 9:02 AM: The soon\n- 2026-04-01 Wed 9:00 AM: Do month.")...)
	if got, err := os.ReadFile(c.home.Path("reminders", "soon.md")); !bytes.Equal(got, want) || err != nil {
		t.Errorf("soon is %q, %v", got, err)
	}
	for _, kept := range []string{"past", "taken"} {
		if _, err := os.Stat(c.home.Path("state", "late", kept+".md")); err != nil {
			t.Error(err)
		}
	}
	c.wait(time.Minute)
	c.starts("soon")
	if r := c.fire("soon"); r.Outcome != runlog.OK {
		t.Errorf("soon ended as %s: %s", r.Outcome, r.Error)
	}
	c.wait(time.Minute)
	c.starts()
	c.has("month.md", "taken.md")
}

// TestShelved: what was only told of is kept whole, as long as records of runs: 90 days, until the clock has gone on for a week.
func TestShelved(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now.Add(-48*time.Hour), "")
	want, err := os.ReadFile(c.home.Path("reminders", "a.md"))
	if err != nil {
		t.Fatal(err)
	}
	c.starts()
	for _, step := range []struct {
		after time.Duration
		kept  bool
	}{{0, true}, {90*24*time.Hour + time.Minute, true}, {8 * 24 * time.Hour, false}} {
		c.wait(step.after)
		c.starts()
		got, err := os.ReadFile(c.home.Path("state", "late", "a.md"))
		if kept := err == nil && bytes.Equal(got, want); kept != step.kept {
			t.Errorf("%s: kept: %v, want %v (%v)", c.now, kept, step.kept, err)
		}
	}
}

// TestFiftyOverdue: one update names them all, however long their texts are.
func TestFiftyOverdue(t *testing.T) {
	for name, more := range map[string]string{"short": "", "long": "description: %s " + strings.Repeat("and more ", 40) + "\n"} {
		t.Run(name, func(t *testing.T) {
			c := newClock(t)
			for i := range 50 {
				id, line := fmt.Sprintf("r%02d", i), more
				if line != "" {
					line = fmt.Sprintf(more, id)
				}
				c.remind(id, c.now.Add(-7*24*time.Hour+time.Duration(i)*time.Minute), line)
			}
			c.starts()
			c.has()
			got := c.updates()
			if len(got) != 1 {
				t.Fatalf("%d updates, want one", len(got))
			}
			for i := range 50 {
				if id := fmt.Sprintf("r%02d", i); !strings.Contains(got[0], id) {
					t.Errorf("%s is not named", id)
				}
			}
			if strings.Contains(got[0], "left out") || len([]rune(got[0])) > update.MaxChars {
				t.Errorf("%d characters: %s", len(got[0]), got[0])
			}
			c.wait(time.Minute)
			c.starts()
			if len(c.updates()) != 1 {
				t.Error("told again")
			}
		})
	}
}

// TestCollectCutOff: the next tick reports a reminder that was claimed for the update and is not in it.
func TestCollectCutOff(t *testing.T) {
	c := newClock(t)
	c.write(c.home.Path("state", "firing", "a.md"), reminder("a", c.now.Add(-48*time.Hour), ""))
	c.starts()
	c.has()
	if got := c.updates(); len(got) != 1 || !strings.Contains(got[0], "Do a.") {
		t.Errorf("updates %q", got)
	}
}

// TestAttemptedIsNotCollected: a second attempt is made, however late.
func TestAttemptedIsNotCollected(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now, "")
	c.dies("a", true)
	c.remind("b", c.now, "")
	c.write(c.home.Path("state", "firing", "b.retry.md"), reminder("b", c.now, ""))
	if err := os.Remove(c.home.Path("reminders", "b.md")); err != nil {
		t.Fatal(err)
	}
	c.wait(72 * time.Hour)
	c.starts("a", "b")
	c.has("firing/a.md", "firing/b.retry.md")
}

// TestCollectBusy: what somebody fires at this moment is left to them.
func TestCollectBusy(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now.Add(-48*time.Hour), "")
	held, err := lock.TryGuard(c.home.JobLock("a"))
	if err != nil {
		t.Fatal(err)
	}
	c.starts()
	c.has("a.md")
	c.tells()
	held.Release()
	c.starts()
	c.has()
}

// TestCollectCannotTell: nothing is deleted that the owner was not told of.
func TestCollectCannotTell(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now.Add(-48*time.Hour), "")
	if err := os.MkdirAll(c.home.PendingUpdates(), 0o700); err != nil { // a directory where the file should be
		t.Fatal(err)
	}
	if err := c.minute.Pass(t.Context()); err == nil {
		t.Error("no error")
	}
	c.has("firing/a.md")
	if err := os.Remove(c.home.PendingUpdates()); err != nil {
		t.Fatal(err)
	}
	c.starts()
	c.has()
	c.wait(2 * time.Minute) // the process that could not has that time
	c.tick()
	if got := c.updates(); len(got) != 1 {
		t.Errorf("updates %q", got)
	}
}
