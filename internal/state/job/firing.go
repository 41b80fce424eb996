package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ollim/ollim/internal/platform/store"
)

// attempt says how far a reminder's file has come.
type attempt int

// A reminder waits in reminders/, is moved to state/firing/ for its first attempt, and renamed there for its second, so that
// whoever finds it after a crash knows what was tried.
const (
	Waiting attempt = iota
	First
	Second
)

// retry marks the file of a second attempt.
const retry = ".retry"

var (
	// ErrFiring says that the reminder's run has begun.
	ErrFiring = errors.New("its run has begun")
	// ErrGone says that another process has taken or deleted the file.
	ErrGone = errors.New("it no longer exists")
)

// Attempt is how far the job's file has come; a job that is no reminder always waits.
func (j Job) Attempt() attempt {
	switch {
	case filepath.Base(filepath.Dir(j.Path)) != "firing":
		return Waiting
	case strings.HasSuffix(j.Path, retry+".md"):
		return Second
	}
	return First
}

// Claim moves a reminder's file on to its next attempt, and returns the job with its new path. The caller holds the job's
// lock. ErrGone when the file is no longer there.
func (l Library) Claim(j Job) (Job, error) {
	if err := store.MkdirOwn(l.Home.Firing()); err != nil {
		return j, err
	}
	path := filepath.Join(l.Home.Firing(), j.ID+".md")
	if j.Attempt() != Waiting {
		path = filepath.Join(l.Home.Firing(), j.ID+retry+".md")
	}
	if err := j.move(path, path); err != nil {
		return j, err
	}
	j.Path = path
	return j, nil
}

// GiveBack undoes a Claim: the file is at path again, unless another one is there by now.
func (l Library) GiveBack(j Job, path string) error {
	if j.Path == path {
		return nil
	}
	_, err := os.Lstat(path)
	if err == nil {
		err = fs.ErrExist // it takes nobody's place
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(j.Path, path)
	}
	if err != nil {
		return &store.NotWritten{Path: path, Err: err}
	}
	return nil
}

// Cancel deletes a reminder that waits. ErrFiring when its run has begun, ErrGone when another process was quicker: the file is
// renamed first, which only one of those who claim and cancel it can do.
func (l Library) Cancel(j Job) error {
	if j.Attempt() != Waiting {
		return ErrFiring
	}
	dir, name := filepath.Split(j.Path)
	draft := dir + "." + name + ".tmp-0" // see store.IsDraft
	if err := j.move(draft, j.Path); err != nil {
		return err
	}
	return store.Remove(draft)
}

// move renames the job's file. ErrGone when it is no longer there; any other error names the file called changed.
func (j Job) move(to, changed string) error {
	err := os.Rename(j.Path, to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", j.Path, ErrGone)
	case err != nil:
		return &store.NotWritten{Path: changed, Err: err}
	}
	return nil
}
