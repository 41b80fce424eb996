//go:build amd64 || arm64

package seal

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Seal is the seal of one run. Its methods may be called from several goroutines.
type Seal struct {
	run    *run
	rules  func() (Rules, error)
	broken func(error)
}

// run is the state that all programs of a run share.
type run struct {
	network *network
	ended   [2]int // a pipe: its write end is closed by Close, which every thread that waits notices

	closing sync.Once
	mu      sync.Mutex // protects the fields below, and orders threads.Add before Close
	opened  bool       // a program has been started
	closed  bool
	idle    *thread        // a sealed thread whose program has ended and left no process; nil if there is none
	threads sync.WaitGroup // threads that may start programs
	stuck   atomic.Int32   // number of processes that did not end when they were killed
}

// Check returns the kernel's version of Landlock, which is MinABI or more, or ErrUnsupported with the reason on one line. It takes
// microseconds and changes nothing.
func Check() (abi int, err error) {
	if abi, err = landlockABI(); err == nil {
		err = checkNetwork()
	}
	if err == nil {
		err = checkKeeper()
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return abi, nil
}

// New returns the seal of a run. The caller calls Close when the run ends. rules is called for each start, from any goroutine,
// because a file that was replaced or made since the last start would be closed otherwise. broken, which may be nil, is called with the
// error of a start that wraps ErrNotSealed.
func New(rules func() (Rules, error), broken func(error)) *Seal {
	return &Seal{&run{network: newNetwork()}, rules, broken}
}

// open prepares what the first program needs.
//
// It makes this process undumpable, because a sealed program has the same restrictions as one thread of this process, and could read its
// memory through that thread. As a side effect, other processes of the user cannot read its /proc/PID/environ.
func (r *run) open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	if r.opened {
		return nil
	}
	if _, err := Check(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("%w: prctl: %w", ErrUnsupported, err)
	}
	// Go opens descriptors close-on-exec. Those that this process inherited, such as a lock or an open file, may not be.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	if err := unix.Pipe2(r.ended[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	r.opened = true
	return nil
}

// File returns a new empty file in memory for the standard input of a sealed program. The program may open it again as /dev/stdin, which
// it could not do with a file in a directory that it may not read.
func File() (*os.File, error) {
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "stdin"), nil
}

// With returns a seal of the same run that allows more. It needs no Close of its own.
func (s *Seal) With(extra Rules) *Seal {
	rules := func() (Rules, error) {
		r, err := s.rules()
		return r.add(extra), err
	}
	return &Seal{s.run, rules, s.broken}
}

// Start starts a program as cmd.Start does, sealed; the caller calls cmd.Wait. The program and all that it starts are killed when this
// process ends. The program inherits no descriptor except its three streams and cmd.ExtraFiles, none of which may be a protected file. Its
// path is used as it is, and must be readable by the rules. The error wraps ErrNotSealed if a trial shows that a program could open the
// canary.
//
// Processes that the program leaves behind run until Close.
func (s *Seal) Start(cmd *exec.Cmd) error {
	if err := s.run.open(); err != nil {
		return err
	}
	rules, err := s.rules()
	if err != nil {
		return err
	}
	w := work{cmd: cmd, started: make(chan error)}
	if w.canary, err = newCanary(rules.Canary); err != nil {
		err = fmt.Errorf("%w: %w", ErrNotSealed, err)
	} else if err = s.run.give(w, rules); err == nil {
		err = <-w.started
	}
	if errors.Is(err, ErrNotSealed) && s.broken != nil {
		s.broken(err)
	}
	return err
}

// Close ends the run: it kills every process that a sealed program of the run has left behind, whatever group, session or
// environment that gave itself, and waits for their end. The error tells that some do not end, such as one that waits for a dead
// disk.
func (s *Seal) Close() (err error) {
	r := s.run
	r.closing.Do(func() { err = r.end() })
	return err
}

func (r *run) end() error {
	r.mu.Lock()
	r.closed = true
	opened := r.opened
	if r.idle != nil {
		close(r.idle.work)
	}
	r.mu.Unlock()
	if !opened {
		return nil
	}
	err := os.NewSyscallError("close", unix.Close(r.ended[1]))
	r.threads.Wait()
	r.network.close()
	if n := r.stuck.Load(); n > 0 {
		err = errors.Join(err, fmt.Errorf("processes that were killed have not ended: %d", n))
	}
	return errors.Join(err, os.NewSyscallError("close", unix.Close(r.ended[0])))
}
