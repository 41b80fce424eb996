package run

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrTimeout is the cause of the end of a run whose time is up.
var ErrTimeout = errors.New("timeout")

// ErrWithdrawn is the cause of a context's end if the owner withdraws a message or stops its turn.
var ErrWithdrawn = errors.New("withdrawn")

// lookEvery is the interval at which a run looks whether it was asked to end or closed. It looks at a file: unlike signals and inotify, a file
// reaches the run from any PID namespace, and from any machine that shares the directory.
const lookEvery = time.Second

// lookPatience is how long a look may take, and reachPatience how long the server may then take to answer anything at all. A file of a server
// that is cut off is not read until the server is back, however long that takes, and meanwhile another machine may take the run's locks. So
// both together are less than most leases of network file systems (90 seconds on Linux, 60 on NFS-Ganesha). A server that was restarted opens
// no files for as long as a lease, but it answers, and gives nobody a new lock. bench/nfs has shown looks of 26 seconds and more there.
const (
	lookPatience  = 25 * time.Second
	reachPatience = 5 * time.Second
)

// ErrSilent is the cause of the end of a run whose file cannot be read in time. It is an interruption, as context.Canceled is.
var ErrSilent error = silent{}

type silent struct{}

func (silent) Error() string {
	return fmt.Sprintf("stopped, because the data directory did not answer for %s: its server is cut off or down", lookPatience+reachPatience)
}

func (silent) Is(target error) bool { return target == context.Canceled }

// bounded returns a context that ends at the run's time limit, or when the run is asked to end or another process has closed it. cancel must
// be called.
func (w *work) bounded(parent context.Context) (context.Context, context.CancelFunc) {
	asked, stop := context.WithCancelCause(parent)
	ctx, cancel := context.WithTimeoutCause(asked, w.spec.Limits.Time, ErrTimeout)
	go watch(ctx, w.held, stop)
	return ctx, func() { cancel(); stop(nil) }
}

// held is what a run holds of its data directory: a *runlog.Hold.
type held interface {
	Look() (stop string, err error)
	Reach() error
}

// watch looks at intervals until ctx ends or the run has to, and stops it then.
func watch(ctx context.Context, h held, stop context.CancelCauseFunc) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		looked := beside(func() error {
			why, err := h.Look()
			if err == nil && why != "" {
				err = context.Canceled
			}
			return err
		})
		if err := await(ctx, looked, h.Reach); err != nil {
			stop(err)
			return
		}
	}
}

// await returns the result of a look, or ErrSilent if it is late and the server does not answer, or its error if it answers with one. It
// returns nil when ctx ends.
func await(ctx context.Context, looked <-chan error, reach func() error) error {
	var reached <-chan error
	late := time.NewTimer(lookPatience)
	defer late.Stop()
	for {
		select {
		case err := <-looked:
			return err
		case err := <-reached:
			if err != nil {
				return err
			}
			reached = nil
			late.Reset(lookPatience)
		case <-late.C:
			if reached != nil {
				return ErrSilent
			}
			reached = beside(reach)
			late.Reset(reachPatience)
		case <-ctx.Done():
			return nil
		}
	}
}

// beside calls do in a goroutine, which stays until the server of the data directory answers.
func beside(do func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- do() }()
	return result
}

// stopped adds the reason of a stop to an error, because the engine only knows that its context ended.
func stopped(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	cause := context.Cause(ctx)
	if !errors.Is(cause, context.Canceled) && !errors.Is(cause, ErrTimeout) {
		return cause // the caller gave the reason
	}
	return errors.Join(cause, err)
}
