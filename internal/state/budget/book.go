package budget

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Book is the bucket of one data directory. An error of a method that changes it wraps *store.NotWritten or
// *lock.Failed, or lock.ErrBusy after ten seconds; the bucket is unchanged then.
type Book struct {
	Home paths.Dir
	Disk store.Disk
	Zone *time.Location
}

// Errors of Set.
var (
	ErrCapacity = errors.New("want 0 to 1000 tokens")
	ErrRate     = errors.New("want 1 to 10080 minutes")
)

// Status returns the state of the bucket. It takes no lock and is read-only, so a file that cannot be parsed only
// causes a warning.
func (b Book) Status() (Status, error) {
	f, invalid, err := store.PeekJSON[file](b.Home.PingBudget())
	if err != nil {
		return Status{}, err
	}
	if invalid != nil {
		b.Disk.Warn(fmt.Sprintf("%s: not valid (%v)", b.Home.PingBudget(), invalid))
	}
	return f.at(b.now()), nil
}

// Take takes a token for a ping and counts it, or reports that there is no whole token. The status is the one
// afterwards; it is zero with an error.
func (b Book) Take(ctx context.Context) (ok bool, s Status, err error) {
	s, err = b.edit(ctx, func(s *Status) {
		if ok = s.Available >= 1; ok {
			s.add(-1)
			s.DailyUsed++
		}
	})
	return ok && err == nil, s, err
}

// TakeCritical counts a critical ping, which needs no token.
func (b Book) TakeCritical(ctx context.Context) error {
	_, err := b.edit(ctx, func(s *Status) { s.CriticalUsed++ })
	return err
}

// Return gives back what Take, or with critical what TakeCritical, took for a ping that was definitely not delivered.
func (b Book) Return(ctx context.Context, critical bool) error {
	_, err := b.edit(ctx, func(s *Status) {
		if critical {
			s.CriticalUsed = max(s.CriticalUsed-1, 0)
			return
		}
		s.add(1)
		s.DailyUsed = max(s.DailyUsed-1, 0)
	})
	return err
}

// Set changes the capacity of the bucket and the minutes in which one token is refilled; nil leaves a value as it is.
// The available tokens stay, up to a lower capacity. The error wraps ErrCapacity or ErrRate if a value is out of
// bounds.
func (b Book) Set(ctx context.Context, capacity, rateMinutes *int) error {
	if capacity != nil && (*capacity < 0 || *capacity > maxCapacity) {
		return fmt.Errorf("capacity %d: %w", *capacity, ErrCapacity)
	}
	if rateMinutes != nil && (*rateMinutes < 1 || *rateMinutes > maxRate) {
		return fmt.Errorf("rate %d: %w", *rateMinutes, ErrRate)
	}
	_, err := b.edit(ctx, func(s *Status) {
		if capacity != nil {
			s.Capacity = *capacity
		}
		if rateMinutes != nil {
			s.RefillEvery = time.Duration(*rateMinutes) * time.Minute
		}
		s.add(0)
	})
	return err
}

// now returns the time in the precision of the file, so that storing it neither loses nor gains time.
func (b Book) now() time.Time { return b.Disk.Now().In(b.Zone).Truncate(time.Microsecond) }

// edit changes the bucket under its lock. It writes even if nothing was taken: that ends the wait for the time to which
// a clock was set before it was corrected.
func (b Book) edit(ctx context.Context, change func(*Status)) (s Status, err error) {
	err = store.EditJSON(ctx, b.Disk, b.Home.Lock("ping_budget"), b.Home.PingBudget(), func(f *file) error {
		now := b.now()
		s = f.at(now)
		change(&s)
		*f = f.with(s, now)
		return nil
	})
	if err != nil {
		return Status{}, err
	}
	return s, nil
}
