package tick_test

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/channel"
)

// TestChannelsExpire: the session of a channel is removed on the day after 30 days without an access, and not by a tick at a wrong
// date.
func TestChannelsExpire(t *testing.T) {
	c := newClock(t)
	const day = 24 * time.Hour
	book := c.minute.Runner.Channels
	use := func(chat string) channel.Name {
		t.Helper()
		n, err := channel.NewName("irc", chat)
		if err != nil {
			t.Fatal(err)
		}
		turn, err := book.Open(n)
		if err != nil {
			t.Fatal(err)
		}
		turn.Begin(t.Context(), "hi", c.now)
		if err := turn.End(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	there := func(n channel.Name, want bool) {
		t.Helper()
		if _, err := book.Read(n); (err == nil) != want || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("at %s: %v, want it there: %v", c.now, err, want)
		}
	}
	old, used := use("old"), use("used")
	began := c.now
	for range 29 {
		c.wait(day)
		c.tick()
	}
	use("used")
	c.wait(day)
	c.tick()
	there(old, true)
	c.now = began.Add(365 * day) // a wrong date
	c.tick()
	there(old, true)
	c.now = began.Add(31 * day)
	c.tick()
	there(old, false)
	there(used, true)
	for range 28 {
		c.wait(day)
		c.tick()
	}
	there(used, true)
	c.wait(day)
	c.tick()
	there(used, false)
}
