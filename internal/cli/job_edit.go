package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
)

func newJobEdit(d *deps, kind job.Kind) *cobra.Command {
	return command(agentNever(programs), "edit JOB", "Edit a "+string(kind)+" file in $VISUAL or $EDITOR; only a valid result is saved",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return runJobEdit(ctx, d, h, kind, args[0])
		}))
}

func runJobEdit(ctx context.Context, d *deps, h app.Home, kind job.Kind, name string) error {
	s, err := h.Jobs.Load() // no warnings: the file to be mended may be among the bad ones
	if err != nil {
		return err
	}
	path, err := jobPath(s, h, kind, name)
	if err != nil {
		return err
	}
	before, err := store.ReadText(path, maxShown, false)
	if err != nil {
		return &withStatus{fmt.Errorf("%s: %s", path, store.Cause(err)), statusData}
	}
	draft := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.edit-%d.md", filepath.Base(path), os.Getpid()))
	if err := store.Create(draft, before); err != nil {
		return err
	}
	keep, err := d.editDraft(ctx, s, kind, path, draft, before)
	if !keep {
		err = errors.Join(err, store.Remove(draft))
	}
	if err != nil {
		return err
	}
	return d.approveEdited(ctx, h, path)
}

func (d *deps) approveEdited(ctx context.Context, h app.Home, path string) error {
	s, err := h.Jobs.Load()
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(s.Jobs, func(j job.Job) bool { return j.Path == path }); i >= 0 {
		return d.approveOwn(ctx, h, s.Jobs[i])
	}
	return nil // it was as bad as before, and is left so
}

// editDraft reports whether the draft holds work that would otherwise be lost.
func (d *deps) editDraft(ctx context.Context, s job.Set, kind job.Kind, path, draft string, before []byte) (keep bool, err error) {
	if err := d.openEditor(ctx, draft); err != nil {
		return differs(draft, before), err
	}
	after, err := os.ReadFile(draft)
	if err != nil {
		return true, err
	}
	if bytes.Equal(before, after) {
		return false, nil
	}
	kept := func(err error) error { return hint(err, "the file was not changed; your text is in %s", draft) }
	j, err := job.Parse(kind, path, after)
	if err != nil {
		return true, kept(err)
	}
	for _, other := range s.Jobs {
		if other.ID == j.ID && other.Path != path {
			return true, kept(&withStatus{fmt.Errorf("id: %q is the id of %s", j.ID, other.Path), statusData})
		}
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		return true, kept(&withStatus{fmt.Errorf("%s was changed meanwhile", path), statusTempFail})
	}
	if err := store.Replace(path, after); err != nil {
		return true, kept(err)
	}
	return false, nil
}

func differs(path string, before []byte) bool {
	now, err := os.ReadFile(path)
	return err == nil && !bytes.Equal(now, before)
}

// openEditor runs the editor through a shell, as git and crontab do, because $EDITOR may hold arguments.
func (d *deps) openEditor(ctx context.Context, path string) error {
	visual, _ := d.Lookup("VISUAL")
	editor, _ := d.Lookup("EDITOR")
	editor = cmp.Or(visual, editor, "vi")
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "ollim", path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = d.In, d.Stdout, d.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %q: %w", editor, err)
	}
	return nil
}

func newJobRm(d *deps, kind job.Kind, short string) *cobra.Command {
	return command(agentNever(refused), "rm JOB...", short, inHome(d, func(ctx context.Context, h app.Home, args []string) error {
		s, err := h.Jobs.Load() // no warnings: the file to be deleted may be among the bad ones
		if err != nil {
			return err
		}
		return d.each(string(kind)+" rm", args, func(name string) error { return removeJob(ctx, d, h, s, kind, name) })
	}))
}

// removeJob keeps the session of a file that could not be read: its id is not known for certain.
func removeJob(ctx context.Context, d *deps, h app.Home, s job.Set, kind job.Kind, name string) error {
	path, err := jobPath(s, h, kind, name)
	if err != nil {
		return err
	}
	j, findErr := s.Only(kind).Find(name)
	if findErr == nil {
		guard, err := lock.TryGuard(h.Dir.JobLock(j.ID))
		if errors.Is(err, lock.ErrBusy) {
			return hint(errors.Join(errors.New("is running"), err), "try again when its run has ended: ollim run list")
		}
		if err != nil {
			return err
		}
		defer guard.Release()
	}
	if err := store.Remove(path); err != nil || findErr != nil {
		return err
	}
	if _, n, err := h.Inbox.First(j.ID); err == nil {
		d.warn(fmt.Sprintf("%s: accepted events that wait: %d: they do not run unless a file with this id is there again", j.ID, n))
	}
	if err := h.Notices.Worked(ctx, j.ID); err != nil { // a new job of this id begins anew
		return err
	}
	return h.Sessions.RemoveRoutine(j.ID)
}
