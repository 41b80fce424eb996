package tick_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

func TestDue(t *testing.T) {
	c := newClock(t)
	c.remind("later", c.now.Add(time.Second), "")
	c.remind("now", c.now, "")
	c.remind("before", c.now.Add(-time.Hour), "")
	c.remind("off", c.now.Add(-time.Hour), "enabled: false\n")
	c.remind("plain", c.now.Add(-time.Minute), "plain: true\n")
	c.write(c.home.Path("reminders", "bad.md"), "---\nid: bad\n---\nx\n")
	c.write(c.home.Path("routines", "r.md"), "---\nid: r\ncron: \"@yearly\"\n---\nGo.\n")
	c.starts("before", "plain", "now")
	c.wait(time.Second)
	c.starts("later") // the others have a minute to begin
}

// A bad file is notified of once, and again if it is corrected and spoilt in between.
func TestTellsBadFiles(t *testing.T) {
	c := newClock(t)
	c.write(c.home.Path("reminders", "bad.md"), "---\nid: bad\n---\nx\n")
	c.starts()
	c.starts()
	got := c.updates()
	if len(got) != 1 || !strings.Contains(got[0], "reminders/bad.md:") {
		t.Errorf("updates %q, want one of reminders/bad.md", got)
	}
}

func TestPaused(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now, "")
	c.remind("old", c.now.Add(-48*time.Hour), "")
	if err := c.minute.Runner.Spend.Pause(t.Context(), c.now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	c.starts()
	c.has("a.md", "old.md")
	c.wait(time.Hour)
	c.starts("a")
	c.has("a.md")
}

// A fire that only a pause held back is tried again soon.
func TestPausedFire(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now, "")
	if err := c.minute.Runner.Spend.Pause(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if r := c.fire("a"); r.Outcome != runlog.Paused {
		t.Fatal(r.Outcome)
	}
	if err := c.minute.Runner.Spend.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.wait(5*time.Minute - 1)
	c.starts()
	c.wait(1)
	c.starts("a")
}

func TestUnapproved(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now, "allowed-tools: [WebFetch]\n")
	c.starts()
	c.wait(time.Minute)
	c.starts()
	got := c.updates()
	if len(got) != 1 || !strings.Contains(got[0], "ollim approve a") {
		t.Errorf("updates %q, want one that says how to approve", got)
	}
	c.plans() // nothing
	c.approve("a", approval.Owner)
	c.starts("a")
}

func (c *clock) approve(id, by string) {
	c.t.Helper()
	files, err := c.minute.Runner.Jobs.Load()
	if err != nil {
		c.t.Fatal(err)
	}
	j, err := files.Find(id)
	if err != nil {
		c.t.Fatal(err)
	}
	subject, _, err := c.minute.Runner.Approvals.Of(j)
	if err == nil {
		err = c.minute.Runner.Approvals.Approve(c.t.Context(), subject, by)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// plans wants exactly these actions, "start a" or "collect b".
func (c *clock) plans(want ...string) {
	c.t.Helper()
	actions, err := c.minute.Plan(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	var got []string
	for _, a := range actions {
		got = append(got, a.Do+" "+a.Job)
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("plan %q, want %q", got, want)
	}
}

// TestPlanChangesNothing: what a tick would do is only said.
func TestPlanChangesNothing(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now, "")
	c.remind("old", c.now.Add(-48*time.Hour), "")
	c.remind("wide", c.now, "allowed-tools: [WebFetch]\n")
	c.write(c.home.Path("reminders", "bad.md"), "x")
	for range 2 {
		c.plans("collect old", "start a")
	}
	if _, err := os.Stat(c.home.State()); !os.IsNotExist(err) {
		t.Errorf("state/ has come to be: %v", err)
	}
}

// TestNoEngine: told once, and started when there is one. A plain reminder needs none.
func TestNoEngine(t *testing.T) {
	c := newClock(t)
	c.minute.Runner.Settings.Engine = ""
	c.remind("a", c.now, "")
	c.remind("own", c.now, "engine: claude-code\n")
	c.remind("plain", c.now, "plain: true\n")
	c.starts("own", "plain")
	c.starts()
	c.tells("a was not run: no engine is configured")
	c.minute.Runner.Settings.Engine = "fake"
	c.starts("a")
}

// TestMaxStarts: a herd is spread over the minutes, the longest due first.
func TestMaxStarts(t *testing.T) {
	c := newClock(t)
	var want []string
	for i := range 25 {
		id := fmt.Sprintf("r%02d", i)
		want = append(want, id)
		c.remind(id, c.now.Add(time.Duration(i-25)*time.Minute), "")
	}
	var plan []string
	for _, id := range want[:10] {
		plan = append(plan, "start "+id)
	}
	c.plans(plan...)
	for _, n := range []int{10, 20, 25} {
		first := max(0, n-10)
		if n == 25 {
			first = 20
		}
		c.starts(want[first:n]...)
		for _, id := range want[first:n] {
			c.fire(id)
		}
		c.wait(time.Minute)
	}
	c.has()
}

// TestStartsOnce: ticks that follow each other at once start a job once, though it has not begun; a start that came to nothing is
// repeated after a minute.
func TestStartsOnce(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now, "")
	c.starts("a")
	for range 5 {
		c.starts()
		c.wait(10 * time.Second)
	}
	c.wait(10 * time.Second)
	c.starts("a")
}

// TestStartFails: trouble with one does not keep the others from being started.
func TestStartFails(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now.Add(-time.Minute), "")
	c.remind("b", c.now, "")
	start, no := c.minute.Start, errors.New("no")
	c.minute.Start = func(j job.Job) error {
		if j.ID == "a" {
			return no
		}
		return start(j)
	}
	if err := c.minute.Pass(t.Context()); !errors.Is(err, no) {
		t.Errorf("%v, want %v", err, no)
	}
	if !slices.Equal(c.started, []string{"b"}) {
		t.Errorf("started %q", c.started)
	}
}

// TestTwoAtOnce: the second finds the first at work and leaves.
func TestTwoAtOnce(t *testing.T) {
	c := newClock(t)
	for i := range 5 {
		c.remind(fmt.Sprintf("r%d", i), c.now, "")
	}
	for i := range 5 {
		c.remind(fmt.Sprintf("old%d", i), c.now.Add(-48*time.Hour), "")
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := c.minute.Pass(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	slices.Sort(c.started)
	if want := []string{"r0", "r1", "r2", "r3", "r4"}; !slices.Equal(c.started, want) {
		t.Errorf("started %q, want %q", c.started, want)
	}
	if got := c.updates(); len(got) != 1 {
		t.Errorf("updates %q, want one", got)
	}
	held, err := lock.TryGuard(c.home.Lock("tick"))
	if err != nil {
		t.Fatal(err)
	}
	c.wait(time.Minute)
	c.starts()
	held.Release()
	if len(c.tick()) != 5 {
		t.Error("nothing was started after the other tick had ended")
	}
}

func TestPlanAction(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now.Add(-time.Hour), "description: The a\n")
	actions, err := c.minute.Plan(t.Context())
	want := tick.Action{Do: tick.Start, Job: "a", Name: "a", At: c.now.Add(-time.Hour)}
	if err != nil || len(actions) != 1 || actions[0] != want {
		t.Errorf("%+v, %v, want %+v", actions, err, want)
	}
}
