// Package slot records scheduled instants: one file for each claimed one, state/slots/<job>/<instant>, created exclusively before
// anything else is done. Claims of past days are lines of one file for each month, see Recent. Two schedulers, a crontab line and a
// repeated catch-up therefore make exactly one run per slot, and the outcome of each slot is known as long as the files are kept.
//
// A claim names its run and later the outcome. A claim is void if its run has no record and nobody holds its lock, because the process died
// before it wrote the record: the holder of the job's lock may take the claim over.
package slot

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
)

// ErrClaimed is the error of an instant that another run has claimed.
var ErrClaimed = errors.New("already claimed")

// ErrNone is the error of a fire without a due slot, as when a timer is late or obsolete.
var ErrNone = errors.New("no slot is due")

// Outcomes of instants without a run; the other outcomes are those of runs.
const (
	Missed    = "missed"    // it was not claimed in time
	Elsewhere = "elsewhere" // it was another machine's
)

// WasOff is why a slot was missed if nothing else is known.
const WasOff = "the machine was off, or ollim tick did not run"

// Grace is the time in which a slot can be claimed; after that it is missed.
const Grace = 15 * time.Minute

// Claim is the content of a claim's file.
type Claim struct {
	Job      string    `json:"-"`
	Slot     time.Time `json:"slot"`
	Claimed  time.Time `json:"claimed"`
	Run      string    `json:"run,omitempty"`       // id of the run; "" if the slot has no run
	PID      int       `json:"pid,omitempty"`       // process that will execute the run
	PIDStart uint64    `json:"pid_start,omitempty"` // start time of the process, as in the run's record
	Outcome  string    `json:"outcome,omitempty"`   // "" while the run is in progress
	Held     string    `json:"held,omitempty"`      // why the latest attempt to run was given up before it began
	Won      bool      `json:"won,omitempty"`       // the owner's claim command gave the instant to this machine
	Unasked  bool      `json:"unasked,omitempty"`   // the latest attempt was given up because that command failed
}

// Alive reports whether the process that made the claim is alive, if it can be seen from here.
func (c Claim) Alive() bool { return process.ID{PID: c.PID, Start: c.PIDStart}.Alive() }

// Blank reports whether the claim says nothing, as one whose file is empty or not JSON.
func (c Claim) Blank() bool { return c.Run == "" && c.Outcome == "" && c.Held == "" }

// Book is the ledger of one data directory.
type Book struct {
	Home paths.Dir
	Disk store.Disk
	Zone *time.Location
}

// Claim claims an instant for a run, or records its outcome without a run. The error is ErrClaimed if the instant is claimed. It does not
// wait for the disk. If a power cut undoes the claim of a run that may have had effects, Restore makes it again; any other instant is then
// free and is recorded again.
func (b Book) Claim(c Claim) error {
	c.Slot, c.Claimed = c.Slot.In(b.Zone), b.Disk.Now().In(b.Zone)
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	path := b.Path(c.Job, c.Slot)
	create := jot
	if c.Run != "" {
		create = func(path string, data []byte) error { return store.CreateAs(path, data, store.Buffered) }
	}
	err = b.change(c.Slot, func(old bool) error {
		if old {
			switch _, err := b.Load(c.Job, c.Slot); {
			case err == nil:
				return ErrClaimed
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
		}
		if _, err := os.Lstat(path); err == nil { // else a file would be written to the disk that cannot get its name
			return ErrClaimed
		}
		return create(path, append(data, '\n'))
	})
	if errors.Is(err, fs.ErrExist) {
		return ErrClaimed
	}
	return err
}

// jot is store.CreateAs, but not in one step: a concurrent reader may find an empty file, which counts as a claim without a run.
func jot(path string, data []byte) error {
	f, err := store.Open(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if errors.Is(err, fs.ErrNotExist) {
		if err = store.MkdirOwn(filepath.Dir(path)); err == nil {
			f, err = store.Open(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY)
		}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
		return &store.NotWritten{Path: path, Err: err}
	}
	return nil
}

// Rewrite changes a claim that is taken over by another run or has ended. The caller is the run that has it, or holds
// the job's lock. After a power cut the file has the old content or the new one: without either the slot would run again.
func (b Book) Rewrite(c Claim) error { return b.rewrite(c, store.Synced) }

func (b Book) rewrite(c Claim, d store.Durability) error {
	c.Slot = c.Slot.In(b.Zone)
	return b.change(c.Slot, func(bool) error { return store.WriteJSON(b.Path(c.Job, c.Slot), c, d) })
}

// Release voids a run's claim and records the reason. A claim that now belongs to another run stays as it is.
func (b Book) Release(job string, at time.Time, run, why string) error {
	c, err := b.Load(job, at)
	if err != nil || c.Run != run {
		return err
	}
	return b.Rewrite(Claim{Job: job, Slot: at, Claimed: c.Claimed, Held: why, Won: c.Won})
}

// Win records that the owner's claim command gave the instant of a run's claim to this machine, so that it is not asked again.
func (b Book) Win(job string, at time.Time, run string) error {
	c, err := b.Load(job, at)
	if err != nil || c.Run != run {
		return err
	}
	c.Won = true
	return b.Rewrite(c)
}

// Settle records the outcome of the run that has a claim. A claim that now belongs to another run stays as it is. After a power cut the
// claim may be without the outcome, which is that of the run's record, or need Restore.
func (b Book) Settle(job string, at time.Time, run, outcome string) error {
	return b.settle(job, at, run, outcome, store.Buffered)
}

// Fail is Settle for a run that has no record: only the outcome says that the slot is not free.
func (b Book) Fail(job string, at time.Time, run, outcome string) error {
	return b.settle(job, at, run, outcome, store.Synced)
}

// Restore makes the claim of a run again if a power cut has undone it. A claim that says anything stays as it is.
func (b Book) Restore(c Claim) error {
	switch now, err := b.Load(c.Job, c.Slot); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case !now.Blank():
		return nil
	}
	return b.Rewrite(c)
}

func (b Book) settle(job string, at time.Time, run, outcome string, d store.Durability) error {
	c, err := b.Load(job, at)
	if err != nil || c.Run != run {
		return err
	}
	c.Outcome = outcome
	return b.rewrite(c, d)
}

// Load reads one claim; the error is fs.ErrNotExist if the instant is unclaimed. A file that cannot be parsed counts as
// a claim without a run.
func (b Book) Load(job string, at time.Time) (Claim, error) { return b.Reader(job).Load(at) }

// own reads the claim's own file.
func (b Book) own(job string, at time.Time) (Claim, error) {
	c := Claim{Job: job, Slot: at}
	data, err := read(b.Path(job, at))
	if err != nil {
		return c, err
	}
	if json.Unmarshal(data, &c) != nil {
		c = Claim{Job: job, Slot: at}
	}
	return c, nil
}

// most is larger than any claim, in bytes.
const most = 1 << 10

// read is os.ReadFile for small files, with half the system calls: an audit reads tens of thousands of files.
func read(path string) ([]byte, error) {
	const how = syscall.O_RDONLY | syscall.O_CLOEXEC | syscall.O_NONBLOCK // does not wait for the other end of a named pipe
	fd, err := syscall.Open(path, how, 0)
	for err == syscall.EINTR {
		fd, err = syscall.Open(path, how, 0)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	buffer := make([]byte, most)
	n, err := syscall.Read(fd, buffer)
	for err == syscall.EINTR {
		n, err = syscall.Read(fd, buffer)
	}
	_ = syscall.Close(fd)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return buffer[:n], nil
}

// jobs returns the ids of the jobs that have claims, sorted.
func (b Book) jobs() ([]string, error) {
	entries, err := store.List(b.Home.Slots())
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Prune removes the claims of instants before a time, and directories that are empty and unchanged since then.
func (b Book) Prune(ctx context.Context, before time.Time) error {
	jobs, err := b.jobs()
	for _, id := range jobs {
		entries, readErr := os.ReadDir(b.folder(id))
		err = errors.Join(err, readErr)
		for _, e := range entries {
			if at, parseErr := time.Parse(form, e.Name()); parseErr == nil && at.Before(before) {
				err = errors.Join(err, os.Remove(filepath.Join(b.folder(id), e.Name())))
			}
		}
		err = errors.Join(err, b.pruneFolds(ctx, id, before))
		if info, statErr := os.Stat(b.folder(id)); statErr == nil && info.ModTime().Before(before) { // a new one is about to get a claim
			_ = os.Remove(b.folder(id)) // fails if it is not empty
		}
	}
	return err
}

// form is the layout of a claim's name: its instant in UTC, which sorts by time.
const form = "20060102T150405Z"

// Path returns the file of a claim.
func (b Book) Path(job string, at time.Time) string {
	return filepath.Join(b.folder(job), at.UTC().Format(form))
}

func (b Book) folder(job string) string { return filepath.Join(b.Home.Slots(), job) }
