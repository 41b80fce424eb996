package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
)

// TestHungHolder: a lock that a process has waited for in vain is not waited for so long again, until it was had.
func TestHungHolder(t *testing.T) {
	t.Parallel()
	path, table := lockPath(t), &lock.Table{}
	holder := must[*lock.Held](t)(lock.Try(path))
	busy := func(ctx context.Context, limit time.Duration) {
		t.Helper()
		held, err := table.WaitAtMost(ctx, path, limit)
		if held.Release(); !errors.Is(err, lock.ErrBusy) {
			t.Fatal(err)
		}
	}
	impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	busy(impatient, time.Hour)
	if table.Hung(path) {
		t.Error("who gives up early has not shown that the holder hangs")
	}
	busy(t.Context(), 20*time.Millisecond)
	if !table.Hung(path) {
		t.Error("a wait in vain has not shown that the holder hangs")
	}
	for range 2 {
		busy(t.Context(), 24*time.Hour) // the test would not end
	}
	must[*lock.Held](t)(table.WaitAtMost(t.Context(), path+".other", time.Hour)).Release()
	holder.Release()
	for range 2 {
		must[*lock.Held](t)(table.WaitAtMost(t.Context(), path, time.Hour)).Release()
	}
	eventually(t, "the lock that was had is like any other", func() bool { return !table.Hung(path) })
}
