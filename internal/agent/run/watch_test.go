package run

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollim/ollim/internal/state/runlog"
)

// holding is what a run holds, with looks of a test. Its server answers within a time.
type holding struct {
	look    func(n int) (string, error) // the nth
	answers time.Duration
	n       int
	reached int
	until   int // after so many answers the server is silent for an hour; 0: never; if negative, it answers with an error
}

func (h *holding) Look() (string, error) {
	h.n++
	return h.look(h.n - 1)
}

func (h *holding) Reach() error {
	if h.reached++; h.until > 0 && h.reached > h.until {
		time.Sleep(time.Hour)
	}
	time.Sleep(h.answers)
	if h.until < 0 {
		return errPrepared
	}
	return nil
}

// TestWatch: a run ends within a second of the moment at which its file says so, and half a minute after a read of the file that has no end,
// unless the server answers.
func TestWatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		look    func(n int) (string, error)
		answers time.Duration
		want    error
		after   time.Duration
		until   int
	}{
		"asked to end": {func(n int) (string, error) { return []string{"", "", "stopped by ollim stop"}[n], nil }, 0, context.Canceled, 3 * time.Second, 0},
		"closed":       {func(int) (string, error) { return "", runlog.ErrClosed }, 0, runlog.ErrClosed, time.Second, 0},
		"cut off": {func(n int) (string, error) {
			if n == 4 {
				time.Sleep(time.Hour)
			}
			return "", nil
		}, time.Hour, ErrSilent, 35 * time.Second, 0},
		"a grace period of 80 s": {func(n int) (string, error) {
			switch n {
			case 4:
				time.Sleep(80 * time.Second)
			case 9:
				return "", runlog.ErrClosed
			}
			return "", nil
		}, 4 * time.Second, runlog.ErrClosed, 89 * time.Second, 0},
		"cut off for 25 s": {func(n int) (string, error) {
			switch n {
			case 4:
				time.Sleep(25 * time.Second)
			case 9:
				return "", runlog.ErrClosed
			}
			return "", nil
		}, time.Hour, runlog.ErrClosed, 34 * time.Second, 0},
		"gone": {func(n int) (string, error) {
			if n == 4 {
				time.Sleep(time.Hour)
			}
			return "", nil
		}, 4 * time.Second, errPrepared, (5 + 25 + 4) * time.Second, -1},
		"cut off after an answer": {func(n int) (string, error) {
			if n == 4 {
				time.Sleep(time.Hour)
			}
			return "", nil
		}, 4 * time.Second, ErrSilent, (5 + 25 + 4 + 25 + 5) * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				ctx, stop := context.WithCancelCause(t.Context())
				watch(ctx, &holding{look: tc.look, answers: tc.answers, until: tc.until}, stop)
				if err := context.Cause(ctx); !errors.Is(err, tc.want) || time.Since(begun) != tc.after {
					t.Errorf("ended after %s: %v, want %s: %v", time.Since(begun), err, tc.after, tc.want)
				}
				time.Sleep(2 * time.Hour) // until the read has ended
			})
		})
	}
}

// TestSilentIsAnInterruption: a run whose data directory did not answer was interrupted, through no fault of its job.
func TestSilentIsAnInterruption(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	stop(ErrSilent)
	err := stopped(ctx, errors.New("signal: killed"))
	if got := outcomeOf(err); got != runlog.Interrupted || !errors.Is(err, ErrSilent) {
		t.Errorf("the outcome is %s: %v", got, err)
	}
}
