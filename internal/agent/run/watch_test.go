package run

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollim/ollim/internal/state/runlog"
)

// TestWatch: a run ends within a second of the moment at which its file says so, and half a minute after a read of the file that has no end.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		look  func(n int) (string, error) // the nth
		want  error
		after time.Duration
	}{
		"asked to end": {func(n int) (string, error) { return []string{"", "", "stopped by ollim stop"}[n], nil }, context.Canceled, 3 * time.Second},
		"closed":       {func(int) (string, error) { return "", runlog.ErrClosed }, runlog.ErrClosed, time.Second},
		"cut off": {func(n int) (string, error) {
			if n == 4 {
				time.Sleep(time.Hour)
			}
			return "", nil
		}, errSilent, 35 * time.Second},
		"cut off for 25 s": {func(n int) (string, error) {
			switch n {
			case 4:
				time.Sleep(25 * time.Second)
			case 9:
				return "", runlog.ErrClosed
			}
			return "", nil
		}, runlog.ErrClosed, 34 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun, n := time.Now(), -1
				ctx, stop := context.WithCancelCause(t.Context())
				watch(ctx, func() (string, error) { n++; return tc.look(n) }, stop)
				if err := context.Cause(ctx); !errors.Is(err, tc.want) || time.Since(begun) != tc.after {
					t.Errorf("ended after %s: %v, want %s: %v", time.Since(begun), err, tc.after, tc.want)
				}
				time.Sleep(time.Hour) // until the read has ended
			})
		})
	}
}

// TestSilentIsAnInterruption: a run whose data directory did not answer was interrupted, through no fault of its job.
func TestSilentIsAnInterruption(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errSilent)
	err := stopped(ctx, errors.New("signal: killed"))
	if got := outcomeOf(err); got != runlog.Interrupted || !errors.Is(err, errSilent) {
		t.Errorf("the outcome is %s: %v", got, err)
	}
}
