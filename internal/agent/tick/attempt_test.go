package tick_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

const unavailable = "(agent unavailable) Do a."

// TestAttempts: a failure is tried once more after five minutes; after the second the text is delivered as it is.
func TestAttempts(t *testing.T) {
	c := newClock(t)
	c.engine.err = errors.New("dead")
	c.remind("a", c.now, "")
	c.starts("a")
	if r := c.fire("a"); r.Outcome != runlog.Failed {
		t.Fatal(r.Outcome)
	}
	c.has("firing/a.md")
	c.tells()
	c.wait(5*time.Minute - 1)
	c.starts()
	c.wait(1)
	c.starts("a")
	c.fire("a")
	c.has()
	c.tells(unavailable)
	c.wait(time.Hour)
	c.starts()
}

func TestSecondAttemptWorks(t *testing.T) {
	c := newClock(t)
	c.engine.err = errors.New("dead")
	c.remind("a", c.now, "")
	c.fire("a")
	c.engine.err = nil
	c.wait(72 * time.Hour) // the machine was off
	c.starts("a")
	if r := c.fire("a"); r.Outcome != runlog.OK {
		t.Fatal(r.Outcome)
	}
	c.has()
	c.tells()
}

// TestEngineCannotBeHad: what fails before the agent begins is an attempt too.
func TestEngineCannotBeHad(t *testing.T) {
	c := newClock(t)
	c.minute.Runner.Engines = func(string) (engine.Engine, error) { return nil, engine.ErrUnavailable }
	c.remind("a", c.now, "")
	c.fire("a")
	c.has("firing/a.md")
	c.wait(5 * time.Minute)
	c.starts("a")
	c.fire("a")
	c.has()
	c.tells("The model service of the engine fake is overloaded or cannot be reached: engine unavailable", unavailable)
}

// TestRefused: a fire that a limit refused is no attempt, and is asked for again each hour.
func TestRefused(t *testing.T) {
	c := newClock(t)
	c.minute.Runner.Spend.Limits.RunsPerDay = 1
	c.remind("a", c.now, "")
	c.remind("b", c.now, "")
	c.fire("b")
	if r := c.fire("a"); r.Outcome != runlog.Refused {
		t.Fatalf("%s %s", r.Outcome, r.Error)
	}
	c.has("a.md")
	c.wait(time.Hour - 1)
	c.starts()
	c.wait(1)
	c.starts("a")
	c.wait(25 * time.Hour) // it never ran: it is notified of like any other
	c.starts()
	c.has()
}

// TestCrash: a reminder whose process was killed is tried again five minutes after the last sign of it, and then given up.
func TestCrash(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now, "")
	first := c.dies("a", true)
	c.starts()
	if r, err := c.minute.Runner.Runs.Load(first.ID); err != nil || r.Outcome != runlog.Interrupted {
		t.Errorf("the dead run is %q, %v", r.Outcome, err)
	}
	c.wait(5 * time.Minute)
	c.starts("a")
	c.dies("a", true)
	c.has("firing/a.retry.md")
	c.wait(5 * time.Minute)
	c.starts("a")
	if r := c.fire("a"); r.Outcome != runlog.Failed || r.Error != "it was tried twice, and cut off both times" {
		t.Errorf("%s: %s", r.Outcome, r.Error)
	}
	c.has()
	c.tells(unavailable)
}

// TestCrashBeforeTheClaim: nothing was done yet, so both attempts are still to come.
func TestCrashBeforeTheClaim(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now, "")
	c.dies("a", false)
	c.wait(5 * time.Minute)
	c.starts("a")
	c.fire("a")
	c.has()
	c.tells()
}

// TestUnderWay: what runs is left alone, however long.
func TestUnderWay(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now, "")
	r := c.dies("a", true)
	r.Process = c.minute.Runner.Host.Process()
	held, err := c.minute.Runner.Runs.Hold(r.ID)
	if err == nil {
		_, err = c.minute.Runner.Runs.Open(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer held.Leave()
	c.wait(30 * time.Hour)
	c.starts()
	c.has("firing/a.md")
}

// TestClockSetBack: an attempt that seems to be in the future keeps nothing waiting.
func TestClockSetBack(t *testing.T) {
	c := newClock(t)
	c.engine.err = errors.New("dead")
	due := c.now
	c.remind("a", due, "")
	c.wait(365 * 24 * time.Hour)
	if r := c.fire("a"); r.Outcome != runlog.Failed {
		t.Fatal(r.Outcome)
	}
	c.has("firing/a.md")
	c.now = due.Add(-time.Minute)
	c.starts() // not due any more
	c.now = due
	c.starts("a")
}

// TestSameIDAgain: how a reminder of the same id ended does not keep a new one waiting.
func TestSameIDAgain(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now, "")
	c.fire("a")
	c.wait(time.Minute)
	c.remind("a", c.now, "")
	c.starts("a")
	c.wait(48 * time.Hour)
	c.starts()
	c.has()
	if got := c.updates(); len(got) != 1 {
		t.Errorf("updates %q, want one", got)
	}
}

// TestBeforeItsTime: fired by hand, it is done with if that worked; if not, its time is still to come.
func TestBeforeItsTime(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now.Add(time.Hour), "")
	c.remind("b", c.now.Add(time.Hour), "")
	c.fire("a")
	c.has("b.md")
	c.engine.err = errors.New("dead")
	c.fire("b")
	c.wait(10 * time.Minute)
	c.starts()
	c.wait(50 * time.Minute)
	c.starts("b")
}

// TestStopped: a run that was ended by a signal is one attempt.
func TestStopped(t *testing.T) {
	c := newClock(t)
	c.engine.err = fmt.Errorf("engine: %w", context.Canceled)
	c.remind("a", c.now, "")
	if r := c.fire("a"); r.Outcome != runlog.Interrupted {
		t.Fatal(r.Outcome)
	}
	c.has("firing/a.md")
	c.wait(5 * time.Minute)
	c.starts("a")
	c.fire("a")
	c.has()
	c.tells(unavailable)
}

// TestStoppedEarly: a signal that comes before the file is claimed costs no attempt.
func TestStoppedEarly(t *testing.T) {
	c := newClock(t)
	c.minute.Runner.Engines = func(string) (engine.Engine, error) { return nil, context.Canceled }
	c.remind("a", c.now, "")
	c.fire("a")
	c.has("a.md")
}
