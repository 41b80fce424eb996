// Package slot records scheduled instants: one file for each claimed one, state/slots/<job>/<instant>, created exclusively
// before anything else is done. Two schedulers, a crontab line and a repeated catch-up therefore make exactly one run per
// slot, and the outcome of each slot is known as long as the files are kept.
//
// A claim names its run and later the outcome. A claim whose run has no record, because the process died in between, is void:
// the holder of the job's lock may take it over.
package slot

import (
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

// ErrClaimed says that the instant has been answered by another run.
var ErrClaimed = errors.New("already claimed")

// ErrNone says that no slot is due: a timer was late, or is stale.
var ErrNone = errors.New("no slot is due")

// Missed is the outcome of an instant that nobody answered in time; the others are those of runs.
const Missed = "missed"

// Grace is how long a slot may wait to be answered; after that it is missed.
const Grace = 15 * time.Minute

// Claim is one file.
type Claim struct {
	Job      string    `json:"-"`
	Slot     time.Time `json:"slot"`
	Claimed  time.Time `json:"claimed"`
	Run      string    `json:"run,omitempty"`       // its id; "" when no run answers it
	PID      int       `json:"pid,omitempty"`       // of the process that is to run it
	PIDStart uint64    `json:"pid_start,omitempty"` // as in the run's record
	Outcome  string    `json:"outcome,omitempty"`   // "" while the run is under way
	Held     string    `json:"held,omitempty"`      // why the latest attempt to answer it was given up before it began
}

// Alive reports whether the process that made the claim still runs.
func (c Claim) Alive() bool { return process.ID{PID: c.PID, Start: c.PIDStart}.Alive() }

// Book is the ledger of one data directory.
type Book struct {
	Home paths.Dir
	Disk store.Disk
	Zone *time.Location
}

// Claim takes an instant for a run, or notes what became of one without a run. ErrClaimed when it is taken. A run's claim survives
// a power cut, as what the run does may. Other notes need not, since whoever made them finds the instant free again.
func (b Book) Claim(c Claim) error {
	c.Slot, c.Claimed = c.Slot.In(b.Zone), b.Disk.Now().In(b.Zone)
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	create := store.Create
	if c.Run == "" {
		create = jot
	}
	err = create(b.path(c.Job, c.Slot), append(data, '\n'))
	if errors.Is(err, fs.ErrExist) {
		return ErrClaimed
	}
	return err
}

// jot is store.Create without waiting for the disk, and not in one step: who looks this moment may find an empty file, which is a
// claim without a run.
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

// Rewrite changes a claim: it is taken over by another run, or has ended. The caller is the run that has it, or holds the job's
// lock.
func (b Book) Rewrite(c Claim) error {
	c.Slot = c.Slot.In(b.Zone)
	return store.WriteJSONAs(b.path(c.Job, c.Slot), c, store.Buffered)
}

// Release gives up a run's claim, so that it is void, and says why. A claim that another run has by now stays as it is.
func (b Book) Release(job string, at time.Time, run, why string) error {
	c, err := b.Load(job, at)
	if err != nil || c.Run != run {
		return err
	}
	return b.Rewrite(Claim{Job: job, Slot: at, Claimed: c.Claimed, Held: why})
}

// Settle notes how the run that has a claim ended. A claim that another run has by now stays as it is.
func (b Book) Settle(job string, at time.Time, run, outcome string) error {
	c, err := b.Load(job, at)
	if err != nil || c.Run != run {
		return err
	}
	c.Outcome = outcome
	return b.Rewrite(c)
}

// Load reads one claim; fs.ErrNotExist when nobody has claimed the instant. A file that cannot be read as a claim is one
// without a run: it was claimed.
func (b Book) Load(job string, at time.Time) (Claim, error) {
	c := Claim{Job: job, Slot: at}
	data, err := read(b.path(job, at))
	if err != nil {
		return c, err
	}
	if json.Unmarshal(data, &c) != nil {
		c = Claim{Job: job, Slot: at}
	}
	return c, nil
}

// most is more than any claim has, in bytes.
const most = 1 << 10

// read is os.ReadFile for small files, in half the calls: an audit reads tens of thousands.
func read(path string) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	for err == syscall.EINTR {
		fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
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

// List is the claims of a job for instants from since on, oldest first.
func (b Book) List(job string, since time.Time) ([]Claim, error) {
	entries, err := os.ReadDir(b.folder(job))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var claims []Claim
	for _, e := range entries {
		at, err := time.Parse(form, e.Name())
		if err != nil || at.Before(since) {
			continue
		}
		c, err := b.Load(job, at)
		if errors.Is(err, fs.ErrNotExist) {
			continue // pruned this moment
		}
		if err != nil {
			return claims, err
		}
		claims = append(claims, c)
	}
	return claims, nil
}

// Jobs names the jobs that have claims, sorted.
func (b Book) Jobs() ([]string, error) {
	entries, err := os.ReadDir(b.Home.Slots())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// Prune removes the claims of instants before a time, and directories that nothing has come to since.
func (b Book) Prune(before time.Time) error {
	jobs, err := b.Jobs()
	for _, id := range jobs {
		entries, readErr := os.ReadDir(b.folder(id))
		err = errors.Join(err, readErr)
		for _, e := range entries {
			if at, parseErr := time.Parse(form, e.Name()); parseErr == nil && at.Before(before) {
				err = errors.Join(err, os.Remove(filepath.Join(b.folder(id), e.Name())))
			}
		}
		b.drop(id, before)
	}
	return err
}

// drop removes a job's directory if it is empty and has been since a time: one that was made this moment is to hold a claim.
func (b Book) drop(id string, since time.Time) {
	if info, err := os.Stat(b.folder(id)); err == nil && info.ModTime().Before(since) {
		_ = os.Remove(b.folder(id)) // which fails if it is not
	}
}

// form is the name of a claim: its instant in UTC, which sorts by time.
const form = "20060102T150405Z"

func (b Book) path(job string, at time.Time) string {
	return filepath.Join(b.folder(job), at.UTC().Format(form))
}

func (b Book) folder(job string) string { return filepath.Join(b.Home.Slots(), job) }
