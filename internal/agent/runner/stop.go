package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
)

// stopEvery is how often a run looks whether it was asked to end: a request is a file, which reaches it from any PID namespace
// and from any machine that shares the directory, where signals and inotify do not.
const stopEvery = time.Second

// obeyStop returns a context that is cancelled when the run is asked to end. The watch ends with cancel, which must be called.
func (f *Firer) obeyStop(parent context.Context, id string) (ctx context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(parent)
	go func() {
		look := time.NewTicker(stopEvery)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				if f.Runs.StopAsked(id) {
					cancel()
				}
			}
		}
	}()
	return ctx, cancel
}

// tellLeftover tells the owner, once, of a process that keeps the lock of a run r that has ended.
func (f *Firer) tellLeftover(ctx context.Context, r runlog.Record, left *runlog.Leftover) {
	first, err := f.Told.Once(ctx, "leftover "+left.Run)
	f.warn(err)
	if err == nil && first {
		f.notify(ctx, r, fmt.Sprintf("%s cannot run: %s. If you end that process, the next fire runs.", r.Label(), left))
	}
}

// notify sends the owner a message about a run, or leaves it as a pending update where nothing delivers.
func (f *Firer) notify(ctx context.Context, r runlog.Record, text string) {
	if !f.Post.Configured() {
		f.warn(f.Updates.Add(ctx, text, r.ID))
		return
	}
	again, err := f.Runs.At(r.ID)
	if err != nil {
		f.warn(err)
		return
	}
	f.send(ctx, again, outbox.Failure, text)
}
