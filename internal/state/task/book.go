package task

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// Book is the task list of one data directory. Its errors are *plaintext.Unknown, *plaintext.Ambiguous or *Unfit for an invalid argument,
// *Unfit or *fs.PathError if the file cannot be read, and *store.NotWritten, *lock.Failed or, after ten seconds, lock.ErrBusy if nothing
// was changed.
type Book struct {
	Home paths.Dir
	Disk store.Disk
	Zone *time.Location // configured zone, which decides what date today is; never nil

	NoLink bool // reject a list that is a symbolic link, because the caller could have made the link
}

// ambiguous returns the error of a text that matches several tasks.
func ambiguous(name string, tasks []Task) error {
	const most = 10
	var list []string
	for _, t := range tasks[:min(most, len(tasks))] {
		list = append(list, fmt.Sprintf("%d %s", t.Number, t.Text))
	}
	if more := len(tasks) - most; more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return &plaintext.Ambiguous{Name: name, Any: strings.Join(list, "; ")}
}

// All returns the tasks in the order of the file, including done ones. It takes no lock, because the file is replaced as a whole.
func (b Book) All() ([]Task, error) {
	f, err := b.load()
	return f.tasks(), err
}

// Add appends a task, created today unless the draft has a creation date, and returns its number.
func (b Book) Add(ctx context.Context, d Draft) (number int, err error) {
	t, err := d.task(Task{Created: b.today()})
	if err != nil {
		return 0, err
	}
	err = b.edit(ctx, func(f *file) (bool, error) {
		number = f.add(t.line())
		return true, nil
	})
	return number, err
}

// Done marks a task as done today. A task that is done already is not changed. For names see find.
func (b Book) Done(ctx context.Context, name string) (Task, error) {
	return b.change(ctx, name, func(f *file, t *Task) (bool, error) {
		if t.Done {
			return false, nil
		}
		t.complete(b.today())
		f.set(t.Number, t.line())
		return true, nil
	})
}

// Remove removes a task, done or not, and leaves a blank line. It returns the removed task.
func (b Book) Remove(ctx context.Context, name string) (Task, error) {
	return b.change(ctx, name, func(f *file, t *Task) (bool, error) {
		f.remove(t.Number)
		return true, nil
	})
}

// Edit replaces a task's text. Its creation date and priority are kept unless the draft has its own, and a done task stays done.
func (b Book) Edit(ctx context.Context, name string, d Draft) (Task, error) {
	return b.change(ctx, name, func(f *file, t *Task) (bool, error) {
		edited, err := d.task(*t)
		if err != nil {
			return false, err
		}
		*t = edited
		f.set(t.Number, t.line())
		return true, nil
	})
}

func (b Book) change(ctx context.Context, name string, change func(*file, *Task) (bool, error)) (t Task, err error) {
	err = b.edit(ctx, func(f *file) (bool, error) {
		if t, err = find(f.tasks(), name); err != nil {
			return false, err
		}
		return change(f, &t)
	})
	return t, err
}

// edit changes the file under its lock. It writes the file only if change reports a change.
func (b Book) edit(ctx context.Context, change func(*file) (bool, error)) error {
	held, err := b.Disk.Lock(ctx, b.Home.Lock("tasks"))
	if err != nil {
		return err
	}
	defer held.Release()
	f, err := b.load()
	if err != nil {
		return err
	}
	if changed, err := change(&f); err != nil || !changed {
		return err
	}
	if b.NoLink {
		return store.Write(b.Home.Tasks(), f.bytes(), store.Synced) // replaces a link that was made after checkLink
	}
	return store.Replace(b.Home.Tasks(), f.bytes())
}

// maxFile is the size limit of the file, in bytes.
const maxFile = 16 << 20

// Unfit is the error of a file that is not a list (a pipe, or far too large) or of a text that cannot be a task.
type Unfit struct{ Reason string }

func (e *Unfit) Error() string { return e.Reason }

func (b Book) unfit(reason string) error { return &Unfit{b.Home.Tasks() + ": " + reason} }

// load reads the file. A missing file is empty.
func (b Book) load() (file, error) {
	if err := b.checkLink(); err != nil && !b.NoLink {
		return file{}, err
	}
	data, err := store.ReadText(b.Home.Tasks(), maxFile, b.NoLink)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return parseFile(data), nil
	case errors.As(err, new(*fs.PathError)):
		return file{}, err
	}
	return file{}, b.unfit(err.Error())
}

// checkLink rejects a list that is a link to a file not called *.txt, or to a missing file. Any text is a valid list of tasks, so only
// the name tells a list from a file of the system.
func (b Book) checkLink() error {
	target, err := filepath.EvalSymlinks(b.Home.Tasks())
	if errors.Is(err, fs.ErrNotExist) {
		if target, err = os.Readlink(b.Home.Tasks()); err == nil {
			return b.unfit("a link to " + target + ", which is not there")
		}
		return nil
	}
	if err == nil && filepath.Ext(target) != ".txt" {
		err = b.unfit("a link to " + target + ", whose name does not end in .txt")
	}
	return err
}

func (b Book) today() string { return b.Disk.Now().In(b.Zone).Format(time.DateOnly) }

// find returns the one task that name means. Digits are a number; other text is compared, ignoring case, with the whole text of each task
// and then with parts of it, first in open tasks and then in done ones.
func find(list []Task, name string) (Task, error) {
	name = strings.TrimSpace(name)
	if strings.Trim(name, "0123456789") == "" {
		n, err := strconv.Atoi(name)
		if i := slices.IndexFunc(list, func(t Task) bool { return t.Number == n }); i >= 0 && err == nil {
			return list[i], nil
		}
		return Task{}, &plaintext.Unknown{What: "task", Name: name}
	}
	for _, done := range []bool{false, true} {
		for _, fits := range []func(text, name string) bool{func(a, b string) bool { return a == b }, strings.Contains} {
			var found []Task
			for _, t := range list {
				if t.Done == done && fits(strings.ToLower(t.Text), strings.ToLower(name)) {
					found = append(found, t)
				}
			}
			if len(found) == 1 {
				return found[0], nil
			}
			if len(found) > 1 {
				return Task{}, ambiguous(name, found)
			}
		}
	}
	return Task{}, &plaintext.Unknown{What: "task", Name: name}
}
