package tick_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit"
)

// asks begins a run of a job that asks the owner and is killed before its question was sent.
func (c *clock) asks(id string, claimed bool) runlog.Record {
	c.t.Helper()
	f := c.minute.Runner
	r := c.dies(id, claimed)
	run, err := f.Runs.At(r.ID)
	if err == nil {
		err = f.Questions.Ask(c.t.Context(), question.Question{
			Run: r.ID, Job: id, Name: id, Text: "Which?", Asked: c.now, Expires: c.now.Add(time.Hour), Message: r.ID + ".1",
		})
	}
	if err == nil {
		err = run.Event(c.t.Context(), runlog.Event{Type: runlog.Ping, Tool: runlog.AskOwner, Text: "Which?"})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// TestQuestions: a tick ends the record of a run that was killed after it asked as waiting, sends its question, once, and starts
// nothing for it until it is answered or has expired. What it could not start is started again five minutes later.
func TestQuestions(t *testing.T) {
	for _, answered := range []bool{true, false} {
		c := newClock(t)
		c.minute.Continue = func(run string) error { return c.start("continue " + run) }
		c.remind("a", c.now, "isolated: true\n")
		r := c.asks("a", true)
		c.starts()
		if got, err := c.minute.Runner.Runs.Load(r.ID); got.Outcome != runlog.Waiting || got.Question != "Which?" || err != nil {
			t.Fatalf("%s, %q, %v", got.Outcome, got.Question, err)
		}
		for range 3 {
			c.wait(6 * time.Minute)
			c.starts()
		}
		if told := c.updates(); len(told) != 1 || !strings.HasPrefix(told[0], "Which?\n(answer until ") {
			t.Errorf("told %q", told)
		}
		if answered {
			if _, err := fire.New(c.minute.Runner).Answers.Give(t.Context(), r.ID, "red"); err != nil {
				t.Fatal(err)
			}
			if err := c.minute.Runner.Spend.Pause(t.Context(), c.now.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			c.starts() // paused
			c.wait(2 * time.Minute)
		} else {
			c.wait(time.Hour)
		}
		c.starts("continue " + r.ID)
		c.starts()
		c.wait(6 * time.Minute)
		c.starts("continue " + r.ID)
		c.has("firing/a.md")
	}
}

// TestQuestionIsGone: a run whose question was removed or damaged is started, so that it ends and its owner is told why.
func TestQuestionIsGone(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"removed": os.Remove,
		"damaged": func(path string) error { return os.WriteFile(path, []byte("junk\n"), 0o600) },
		"emptied": func(path string) error { return os.WriteFile(path, []byte("{}\n"), 0o600) },
	} {
		c := newClock(t)
		c.minute.Continue = func(run string) error { return c.start("continue " + run) }
		c.remind("a", c.now, "isolated: true\n")
		r := c.asks("a", true)
		c.starts()
		if err := spoil(c.home.Question(r.ID)); err != nil {
			t.Fatal(err)
		}
		sent := len(c.updates())
		c.starts("continue " + r.ID)
		c.starts()
		if _, err := fire.New(c.minute.Runner).Answers.Give(t.Context(), r.ID, "red"); err == nil || !strings.Contains(err.Error(), "its question was removed or damaged") {
			t.Errorf("%s: answered: %v", name, err)
		}
		got, err := fire.New(c.minute.Runner).Answers.Continue(t.Context(), r.ID, run.Observer{})
		why := "its question is gone: state/questions/" + r.ID + ".json was removed or damaged"
		if got.Outcome != runlog.Expired || got.Error != why || err != nil {
			t.Errorf("%s: %s, %q, %v", name, got.Outcome, got.Error, err)
		}
		if told := c.updates(); len(told) != sent+1 || !strings.HasSuffix(told[sent], " has ended: "+why+" (Which?).") {
			t.Errorf("%s: told %q", name, told)
		}
	}
}

// TestQuestionsOfNobody: a question whose run has ended, or is gone, is removed.
func TestQuestionsOfNobody(t *testing.T) {
	c := newClock(t)
	c.remind("a", c.now, "isolated: true\n")
	ended := c.asks("a", true)
	run, err := c.minute.Runner.Runs.At(ended.ID)
	if err == nil {
		err = run.Finish(runlog.Failed, "it failed")
	}
	if err == nil {
		err = c.minute.Runner.Questions.Ask(t.Context(), question.Question{Run: "20260302T080000.000Z-abcdef", Text: "Who?", Expires: c.now.Add(time.Hour)})
	}
	if err != nil {
		t.Fatal(err)
	}
	c.tick()
	if left, err := os.ReadDir(c.home.Questions()); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestWaitingIsNotPruned: the record of a run that waits stays, however old it is.
func TestWaitingIsNotPruned(t *testing.T) {
	c := newClock(t)
	c.minute.Continue = func(string) error { return nil }
	c.remind("a", c.now, "isolated: true\n")
	r := c.asks("a", true)
	c.tick()
	if _, err := fire.New(c.minute.Runner).Answers.Give(t.Context(), r.ID, "red"); err != nil {
		t.Fatal(err)
	}
	ticks := testkit.Full(300, 60)
	for range ticks { // a paused machine
		c.wait(300 * 24 * time.Hour / time.Duration(ticks))
		c.tick()
	}
	if got, err := c.minute.Runner.Runs.Load(r.ID); got.Outcome != runlog.Waiting || err != nil {
		t.Errorf("%s, %v", got.Outcome, err)
	}
}
