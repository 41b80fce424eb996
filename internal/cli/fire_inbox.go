package cli

import (
	"context"
	"errors"
	"time"

	"github.com/ollim/ollim/internal/agent/runner"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/process"
)

// runFireEntry runs the webhook of an entry of the inbox and then, unless alone, starts what can run after it.
func runFireEntry(ctx context.Context, d *deps, run string, alone bool) error {
	outlivePipe()
	ctx.Done() // from here on a signal ends the fire, and not at once the process
	h, err := d.Home()
	if err != nil {
		return err
	}
	r := h.Runner(false)
	record, err := r.FireEntry(ctx, run, runner.Options{})
	if record.ID != "" {
		d.info("fire: run %s: %s", record.ID, record.Outcome)
		err = (&fireOptions{}).verdict(d, record, err)
	}
	if alone || ctx.Err() != nil {
		return err
	}
	s := starter{d: d, home: h}
	_, startErr := r.StartEntries(ctx, s.entry)
	return errors.Join(err, startErr)
}

// entry starts a process that runs an entry of the inbox. Where this process waits for those that it starts, they start no others.
func (s *starter) entry(run string) (process.ID, error) {
	args := []string{"fire", "--inbox", run}
	if s.wait {
		args = append(args, "--alone")
	}
	return s.begin(args...)
}

// endEntries waits for what was started, and starts what can run after it, until nothing can.
func (s *starter) endEntries(ctx context.Context, r *runner.Runner) error {
	for {
		if err := s.end(); err != nil || !s.wait || ctx.Err() != nil {
			return err
		}
		if _, err := r.StartEntries(ctx, s.entry); err != nil || len(s.started) == 0 {
			return errors.Join(err, s.end())
		}
	}
}

// startEntries starts the runs of the entries in the inbox until ctx ends: at every wake, when a run that it has started has ended, and
// when a rate limit allows it. The configuration is read anew each time.
func (d *deps) startEntries(ctx context.Context, wake <-chan struct{}, home func() (app.Home, error)) {
	ended := make(chan struct{}, 1)
	s := &starter{d: d, ended: func() {
		select {
		case ended <- struct{}{}:
		default:
		}
	}}
	for ctx.Err() == nil {
		timer := time.NewTimer(d.passEntries(ctx, s, home))
		select {
		case <-ctx.Done():
		case <-time.After(betweenPasses):
		}
		select {
		case <-ctx.Done():
		case <-wake:
		case <-ended:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// betweenPasses is the least time from one look at the inbox to the next: many events that arrive at once need no look each.
const betweenPasses = 50 * time.Millisecond

// passEntries starts what can start now, and returns how long to wait before the next time.
func (d *deps) passEntries(ctx context.Context, s *starter, home func() (app.Home, error)) time.Duration {
	h, err := home()
	if err == nil {
		s.home = h
		var again time.Duration
		if again, err = h.Runner(false).StartEntries(ctx, s.entry); err == nil && again > 0 {
			return again
		}
	}
	if err != nil && ctx.Err() == nil {
		d.warn(err.Error())
	}
	return time.Minute
}
