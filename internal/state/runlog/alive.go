package runlog

import (
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
)

// mark returns the environment entry that identifies an engine and its child processes.
func mark(id string) string { return "OLLIM_RUN=" + id }

// Attended reports whether the process that executes a run is alive and has not given it up, as after ErrClosed. If the run began in another
// boot or PID namespace, only its lock tells.
func (b Book) Attended(r Record) bool {
	if p := r.Process.ID; !p.Foreign() && !p.Alive() {
		return false
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
	return b.Load(noted(path))
}

// noted returns the id of the run that the file at path names, the lock of a run or of a job; "" if it names none.
func noted(path string) string {
	id, _, _ := strings.Cut(strings.TrimSpace(lock.ReadNote(path)), " ")
	return id
}

// Leftover returns the process that still holds the lock at path after the run named in the lock file has ended; nil if there is none.
// Such a process may hold the lock for ever, so waiting for it is pointless.
func (b Book) Leftover(path string) *Leftover {
	if lock.Free(path) {
		return nil
	}
	return b.leftover(path, noted(path))
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
