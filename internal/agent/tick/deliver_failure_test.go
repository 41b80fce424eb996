package tick_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/runlog"
)

// TestCannotTell: a reminder stays until its text has got somewhere.
func TestCannotTell(t *testing.T) {
	for name, c := range map[string]struct{ more, text, stays string }{
		"agent": {"", unavailable, "firing/a.retry.md"},
		"plain": {"plain: true\n", "Do a.\n(late: it was due Mon 2 Mar 9:00 AM, 15 minutes ago)", "firing/a.md"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newClock(t)
			d.engine.err = errors.New("dead")
			d.remind("a", d.now, c.more)
			if err := os.MkdirAll(d.home.PendingUpdates(), 0o700); err != nil { // a directory where the file should be
				t.Fatal(err)
			}
			for range 3 {
				d.fire("a")
				d.wait(5 * time.Minute)
			}
			d.has(c.stays)
			d.starts("a")
			if err := os.Remove(d.home.PendingUpdates()); err != nil {
				t.Fatal(err)
			}
			d.fire("a")
			d.has()
			d.tells(c.text)
		})
	}
}

// TestNoOutbox: what delivery cannot even put down is told in the next conversation.
func TestNoOutbox(t *testing.T) {
	c := newClock(t)
	c.minute.Runner.Outbox.Command = []string{"true"}
	c.write(c.home.Outbox(), "a file where the folder should be")
	c.remind("a", c.now, "plain: true\n")
	if r := c.fire("a"); r.Outcome != runlog.OK {
		t.Fatalf("%s %s", r.Outcome, r.Error)
	}
	c.has()
	c.tells("Do a.")
}
