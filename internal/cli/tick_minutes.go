package cli

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/schedule/installer"
)

// exit is the end of a process that a waiting tick has started.
type exit struct {
	cmd *exec.Cmd
	err error // nil for any exit status: the record of the run says how it ended
}

// watch has the end of a started process sent to exits.
func (s *starter) watch(cmd *exec.Cmd) {
	if s.started == nil {
		s.started, s.exits = map[*exec.Cmd]bool{}, make(chan exit)
	}
	s.started[cmd] = true
	go func() {
		err := cmd.Wait()
		if as[*exec.ExitError](err) {
			err = nil
		}
		s.exits <- exit{cmd, err}
	}()
}

// goOn takes the error of the first minute's work, and returns it at once unless this tick waits for what it has started. A tick that
// waits also does the work of each further minute, with the settings and jobs of that minute: a scheduler that allows one tick at a time
// starts no other one meanwhile.
func (s *starter) goOn(ctx context.Context, first error) error {
	if len(s.started) == 0 {
		return first
	}
	minutes := time.NewTicker(time.Minute)
	defer minutes.Stop()
	return s.await(ctx, minutes.C, first, work{
		minute: func() error {
			h, err := s.d.Home()
			if err != nil {
				return err
			}
			s.home = h
			return s.minute(ctx).Pass(ctx)
		},
		next: func() error {
			_, err := s.home.Firer().Entries.Start(ctx, s.entry)
			return err
		},
	})
}

// work is what a waiting tick does meanwhile.
type work struct {
	minute func() error // the work of one more minute
	next   func() error // starts what can run after a process that has ended
}

// await returns when every started process has ended. From installer.TickPasses on, and when ctx has ended, it starts no more; in the
// second case it also asks the processes to end. Of several errors it returns the last and warns of the others; ctx's counts if there is
// none.
func (s *starter) await(ctx context.Context, minutes <-chan time.Time, err error, w work) error {
	last, stop := s.d.Now().Add(installer.TickPasses), ctx.Done()
	for len(s.started) > 0 {
		var failed error
		select {
		case e := <-s.exits:
			delete(s.started, e.cmd)
			failed = e.err
			if minutes != nil && ctx.Err() == nil {
				failed = errors.Join(failed, w.next())
			}
		case <-minutes:
			if ctx.Err() == nil && s.d.Now().Before(last) {
				failed = w.minute()
			} else {
				minutes = nil
			}
		case <-stop:
			stop, minutes = nil, nil
			for cmd := range s.started {
				_ = cmd.Process.Signal(syscall.SIGTERM) // one that has just ended needs none
			}
		}
		if failed != nil && err != nil {
			s.d.warn(err.Error())
		}
		if failed != nil {
			err = failed
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}
