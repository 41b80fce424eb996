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

// lookPatience is how long a look may take. A file of a server that is cut off is not read until the server is back, however long that takes,
// and meanwhile another machine may take the run's locks: so the time is less than most leases of network file systems (90 seconds on Linux,
// 60 on NFS-Ganesha), and more than the 26 seconds that a restarted server took to answer in bench/nfs.
const lookPatience = 30 * time.Second

// errSilent is the cause of the end of a run whose file cannot be read in time. It is an interruption, as context.Canceled is.
var errSilent error = silent{}

type silent struct{}

func (silent) Error() string {
	return fmt.Sprintf("stopped, because the data directory did not answer for %s: its server is cut off or down", lookPatience)
}

func (silent) Is(target error) bool { return target == context.Canceled }

// bounded returns a context that ends at the run's time limit, or when the run is asked to end or another process has closed it. cancel must
// be called.
func (w *work) bounded(parent context.Context) (context.Context, context.CancelFunc) {
	asked, stop := context.WithCancelCause(parent)
	ctx, cancel := context.WithTimeoutCause(asked, w.spec.Limits.Time, ErrTimeout)
	go watch(ctx, w.held.Look, stop)
	return ctx, func() { cancel(); stop(nil) }
}

// watch calls look at intervals until ctx ends or the run has to, and stops it then.
func watch(ctx context.Context, look func() (string, error), stop context.CancelCauseFunc) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		seen := make(chan error, 1)
		go func() { // it stays until the file is read
			why, err := look()
			if err == nil && why != "" {
				err = context.Canceled
			}
			seen <- err
		}()
		select {
		case <-ctx.Done():
			return
		case err := <-seen:
			if err != nil {
				stop(err)
				return
			}
		case <-time.After(lookPatience):
			stop(errSilent)
			return
		}
	}
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
