package runlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	stopPatience = 20 * time.Second // four steps of stopping an engine
	stopEvery    = 200 * time.Millisecond
)

// Stop ends a run in progress, in whichever process it runs, and waits until its process and its engine have ended. sleep must return
// early, with an error, when its context ends.
func (b Book) Stop(ctx context.Context, r Record, sleep func(context.Context, time.Duration) error) error {
	if r.Outcome == Waiting {
		return errors.New("is not in progress: it waits for an answer")
	}
	if r.Done() {
		return errors.New("has already ended")
	}
	if err := b.AskStop(r.ID, "stopped by ollim stop"); err != nil {
		return err
	}
	listened := len(r.Answers) > 0 // the process may be a listener that serves other runs as well
	if !listened {
		err := r.Signal(syscall.SIGTERM) // the signal is faster: the process looks for the request only every second
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
	}
	attended := func() bool {
		if now, err := b.Load(r.ID); listened && err == nil {
			r = now
		}
		return !r.Done() && b.Attended(r)
	}
	if err := waitWhile(ctx, sleep, attended); err != nil {
		return fmt.Errorf("process %d%s does not end: %w", r.PID, elsewhere(r), err)
	}
	killEngine(r.ID)
	if err := waitWhile(ctx, sleep, func() bool { return b.Alive(r) }); err != nil {
		return fmt.Errorf("its engine%s does not end: %w", elsewhere(r), err)
	}
	_, err := b.Close(r.ID) // the engine's ollim may have been killed
	if left := b.Leftover(b.Home.RunLock(r.ID)); err == nil && left != nil {
		return left
	}
	return err
}

func waitWhile(ctx context.Context, sleep func(context.Context, time.Duration) error, so func() bool) error {
	for waited := time.Duration(0); so(); waited += stopEvery {
		if waited > stopPatience {
			return fmt.Errorf("still running after %s", stopPatience)
		}
		if err := sleep(ctx, stopEvery); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere describes a process that cannot be signalled from here; "" if it can be signalled.
func elsewhere(r Record) string {
	if r.Foreign() {
		return ", in another PID namespace or of another boot,"
	}
	return ""
}
