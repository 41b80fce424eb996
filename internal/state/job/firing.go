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

// attempt says which attempt to run it a reminder's file stands for.
type attempt int

// A reminder's file waits in reminders/. The first attempt moves it to state/firing/, and the second renames it there. After a crash its
// path tells which attempts were made.
const (
	Waiting attempt = iota
	First
	Second
)

// retry is the part of the file name that marks a second attempt.
const retry = ".retry"

var (
	// ErrFiring says that the reminder's run has begun.
	ErrFiring = errors.New("its run has begun")
	// ErrGone says that another process has taken or deleted the file.
	ErrGone = errors.New("it no longer exists")
)

// Attempt returns the attempt that the job's file stands for. A job that is not a reminder always waits.
func (j Job) Attempt() attempt {
	switch {
	case filepath.Base(filepath.Dir(j.Path)) != "firing":
		return Waiting
	case strings.HasSuffix(j.Path, retry+".md"):
		return Second
	}
	return First
}

// Claim moves a reminder's file to its next attempt, and returns the job with its new path. The caller holds the job's lock. The error is
// ErrGone if the file no longer exists.
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

// GiveBack undoes a Claim: it moves the file back to path, unless another file is there by now.
func (l Library) GiveBack(j Job, path string) error {
	if j.Path == path {
		return nil
	}
	_, err := os.Lstat(path)
	if err == nil {
		err = fs.ErrExist // a file that is there is not replaced
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(j.Path, path)
	}
	if err != nil {
		return &store.NotWritten{Path: path, Err: err}
	}
	return nil
}

// Cancel deletes a waiting reminder. The error is ErrFiring if its run has begun, and ErrGone if another process took the file first. The
// file is renamed before it is deleted: of several processes that claim or cancel a reminder, only one succeeds in renaming it.
func (l Library) Cancel(j Job) error {
	if j.Attempt() != Waiting {
		return ErrFiring
	}
	dir, name := filepath.Split(j.Path)
	draft := dir + "." + name + ".tmp-0" // a name that store.IsDraft recognizes
	if err := j.move(draft, j.Path); err != nil {
		return err
	}
	return store.Remove(draft)
}

// move renames the job's file. The error is ErrGone if the file no longer exists; any other error names the file changed.
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
