package runlog

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
)

// mark returns the environment entry that identifies an engine and its child processes.
func mark(id string) string { return "OLLIM_RUN=" + id }

// Hold takes the lock of a run that has no record yet. Its holder, and an engine that inherits it, mark the run as
// alive for every process, in any PID namespace.
func (b Book) Hold(id string) (*lock.Guard, error) {
	if err := store.MkdirAs(b.Home.Run(id), store.Buffered); err != nil {
		return nil, err
	}
	guard, err := lock.TryGuard(b.Home.RunLock(id))
	if err != nil {
		return nil, err
	}
	if err := guard.Note(id + "\n"); err != nil {
		guard.Release()
		return nil, err
	}
	return guard, nil
}

// Leave releases the lock of a run that has ended, and removes its file.
func (b Book) Leave(id string, guard *lock.Guard) {
	guard.Release()
	_ = os.Remove(b.Home.RunLock(id)) // a failure does no harm: a file that nobody locks means the same as none
}

// Attended reports whether the process that executes a run is alive. If the run began in another boot or PID namespace, only its lock
// tells.
func (b Book) Attended(r Record) bool {
	if p := r.Process.ID; !p.Foreign() {
		return p.Alive()
	}
	return !lock.Free(b.Home.RunLock(r.ID))
}

// Alive reports whether a run is in progress: its process is alive, or an engine that outlived the process. The lock is checked a second
// time at the end, because a child of a killed process holds the lock until it executes its program.
func (b Book) Alive(r Record) bool {
	if r.Done() {
		return false
	}
	path := b.Home.RunLock(r.ID)
	return b.Attended(r) || !lock.Free(path) && b.leftover(path, r.ID) == nil && !lock.Free(path)
}

// Leftover is a process that an engine started and left running, and that still holds a lock of its run.
type Leftover struct {
	Process process.ID
	Run     string
}

func (e *Leftover) Error() string {
	return fmt.Sprintf("process %d (%s), left behind by run %s, still holds the lock", e.Process.PID, e.Process.Name(), e.Run)
}

// Unwrap makes it a lock.ErrBusy.
func (e *Leftover) Unwrap() error { return lock.ErrBusy }

// Noted loads the record of the run that last held the lock at path; the lock file names that run.
func (b Book) Noted(path string) (Record, error) {
	return b.Load(strings.TrimSpace(lock.ReadNote(path)))
}

// Leftover returns the process that still holds the lock at path after the run named in the lock file has ended; nil if there is none.
// Such a process may hold the lock for ever, so waiting for it is pointless.
func (b Book) Leftover(path string) *Leftover {
	if lock.Free(path) {
		return nil
	}
	return b.leftover(path, strings.TrimSpace(lock.ReadNote(path)))
}

func (b Book) leftover(path, id string) *Leftover {
	pids := lock.Inherited(path)
	// a process whose OLLIM_RUN is empty, as env can set it, belongs to no run
	if len(pids) == 0 || id != "" && len(process.Carrying(mark(id))) > 0 {
		return nil
	}
	return &Leftover{process.ID{PID: pids[0]}, id}
}

// Left returns the live processes that the engine of a run has started. It finds only those that this process may see and that kept their
// environment.
func (b Book) Left(id string) []process.ID { return process.Carrying(mark(id)) }

// killEngine kills the engine of a run and all processes that it started, among those that this process may see.
func killEngine(id string) { process.KillAll(mark(id)) }

// AskStop requests that a run ends, in whichever process it runs. why becomes the reason in the run's record.
func (b Book) AskStop(id, why string) error {
	if err := store.MkdirOwn(b.Home.State("stop")); err != nil {
		return err
	}
	err := store.Create(b.Home.StopRequest(id), []byte(why))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// StopAsked reports whether a run was requested to end.
func (b Book) StopAsked(id string) bool {
	_, err := os.Lstat(b.Home.StopRequest(id))
	return err == nil
}

// StopReason returns why a run was requested to end, "" if it was not.
func (b Book) StopReason(id string) string {
	why, err := store.Read(b.Home.StopRequest(id))
	if err != nil {
		return ""
	}
	return cmp.Or(string(why), "stopped by ollim stop")
}

// ForgetStop removes the request to end a run, if any.
func (b Book) ForgetStop(id string) error {
	if !b.StopAsked(id) {
		return nil
	}
	return store.Remove(b.Home.StopRequest(id))
}

// SweepStops removes the stop requests of runs that have ended or whose records are gone.
func (b Book) SweepStops() error {
	entries, err := store.List(b.Home.State("stop"))
	for _, e := range entries {
		r, loadErr := b.Load(e.Name())
		if loadErr == nil && r.Done() || errors.Is(loadErr, fs.ErrNotExist) {
			err = errors.Join(err, b.ForgetStop(e.Name()))
		}
	}
	return err
}
