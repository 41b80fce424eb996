package tick_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// accept puts an event into the inbox, and returns its run.
func (c *clock) accept(hook, body string) string {
	c.t.Helper()
	box := c.minute.Runner.Inbox
	box.NewRun = func() (string, error) { return runlog.NewID(c.now, c.minute.Runner.Random) }
	r, err := box.Receive()
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Close()
	run, _, err := r.Add(c.t.Context(), inbox.Entry{Hook: hook, Hash: body})
	if err != nil {
		c.t.Fatal(err)
	}
	return run
}

func (c *clock) hook(id string) {
	c.t.Helper()
	c.write(c.home.Path("webhooks", id+".md"), "---\nid: "+id+"\nfields:\n  properties:\n    n: {type: integer}\n---\nGo.\n")
}

// TestTickStartsEntries: each minute starts the oldest event of each webhook, and none while everything is paused.
func TestTickStartsEntries(t *testing.T) {
	c := newClock(t)
	var started []string
	c.minute.Entry = func(run string) (process.ID, error) {
		started = append(started, run)
		return process.ID{}, nil
	}
	c.hook("a")
	c.hook("b")
	b, a := c.accept("b", "1"), c.accept("a", "1")
	c.accept("a", "2")
	if err := c.minute.Runner.Spend.Pause(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{nil, {b, a}} {
		started = nil
		if err := c.minute.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		slices.Sort(started)
		slices.Sort(want)
		if !slices.Equal(started, want) {
			t.Errorf("started %q, want %q", started, want)
		}
		if err := c.minute.Runner.Spend.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEntriesOfAGoneHook: events of a webhook without a file are kept as long as run records, and then removed with what was noted of
// it. Those of others stay.
func TestEntriesOfAGoneHook(t *testing.T) {
	c := newClock(t)
	c.minute.Entry = func(string) (process.ID, error) { return process.ID{}, errors.New("no process can be started") }
	c.minute.Keep = 10
	c.hook("here")
	gone, here := c.accept("gone", "1"), c.accept("here", "1")
	for range 30 {
		if err := c.minute.Pass(t.Context()); err == nil {
			t.Error("the failed start is not reported")
		}
		if wait := c.minute.Runner.Inbox.Waits(gone); !wait && c.now.Sub(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)) < 10*24*time.Hour {
			t.Fatal("removed on", c.now)
		}
		c.now = c.now.Add(24 * time.Hour)
	}
	if c.minute.Runner.Inbox.Waits(gone) || !c.minute.Runner.Inbox.Waits(here) {
		t.Error(fmt.Sprint("gone: ", c.minute.Runner.Inbox.Waits(gone), ", here: ", c.minute.Runner.Inbox.Waits(here)))
	}
	if _, err := os.Stat(c.home.State("inbox", "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestOwnerBeforeEntries: the owner's messages and the fork are seen to before the events of webhooks.
func TestOwnerBeforeEntries(t *testing.T) {
	c := newClock(t)
	c.hook("a")
	c.accept("a", "1")
	c.minute.Entry = func(string) (process.ID, error) { return process.ID{}, c.start("entry") }
	c.minute.Nudge = func() error { return c.start("fork") }
	c.minute.Converse = func() error { return c.start("message") }
	r := c.minute.Runner
	r.Queue.Runs = func(string) queue.Fate { return queue.Fate{} }
	message, _, err := turn.New(r).Queue.Enqueue(t.Context(), turn.Message{Text: "Hello"}, turn.Options{Owner: true})
	if err == nil {
		message.Leave()
		err = r.Sessions.OpenFork(t.Context(), session.Fork{ID: "f", Last: c.now})
	}
	if err != nil {
		t.Fatal(err)
	}
	c.wait(turn.ForkIdle)
	c.starts("message", "fork", "entry")
}
