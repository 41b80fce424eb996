package tick_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

// TestModelsHoldNothingUp: the models are checked once a day, after the due work and without the tick's lock, so that another tick can work
// meanwhile. An error of the check is one of the tick.
func TestModelsHoldNothingUp(t *testing.T) {
	c := newClock(t)
	checks := 0
	var during []string
	c.minute.Models = func(ctx context.Context) error {
		checks++
		before := slices.Clone(c.started)
		c.remind("next", c.now, "")
		err := c.minute.Pass(ctx)
		during = slices.Concat(before, c.started[len(before):])
		return err
	}
	c.remind("first", c.now.Add(-time.Minute), "")
	c.tick()
	if want := []string{"first", "next"}; !slices.Equal(during, want) || checks != 1 {
		t.Errorf("%q, %d checks, want %q", during, checks, want)
	}
	c.now = c.now.Add(time.Hour)
	if c.tick(); checks != 1 {
		t.Errorf("%d checks on one day", checks)
	}
	c.now = c.now.AddDate(0, 0, 1)
	broken := errors.New("broken")
	c.minute.Models = func(context.Context) error { return broken }
	if err := c.minute.Pass(t.Context()); !errors.Is(err, broken) {
		t.Error(err)
	}
	c.now = c.now.AddDate(0, 0, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.minute.Pass(ended); errors.Is(err, broken) {
		t.Error("models were checked after the end")
	}
}
