package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
)

func newSessionRm(d *deps) *cobra.Command {
	return command(agentNever(refused), "rm SESSION...", "Delete a transcript or a channel's session",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return d.each("session rm", args, func(name string) error { return d.removeSession(ctx, h, name) })
		}))
}

func newSessionClear(d *deps) *cobra.Command {
	return command(agentNever(refused), "clear SESSION...", "Forget the main session or a routine's, so that the next turn starts a new one",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return d.each("session clear", args, func(text string) error {
				n, found, err := h.SessionName(text)
				if err != nil {
					return err
				}
				if !found {
					return hint(usage("want main or routine:ID"), "%s", insteadOfClear(h, text))
				}
				return forget(ctx, h, n)
			})
		}))
}

func insteadOfClear(h app.Home, text string) string {
	held, _ := h.CurrentNames() // without them the hint is less exact
	names := []app.SessionName{held[text]}
	if files, err := h.Jobs.Load(); err == nil {
		if j, err := files.Find(text); err == nil {
			names = append(names, app.NameOf(j.ID))
		}
	}
	for _, n := range held {
		if n.Routine == text { // of a routine that was removed
			names = append(names, n)
		}
	}
	for _, n := range names {
		if n.Text != "" {
			return "ollim session clear " + n.Text
		}
	}
	return "to delete a transcript or a channel's session: ollim session rm " + text
}

func (d *deps) removeSession(ctx context.Context, h app.Home, text string) error {
	n, found, err := h.SessionName(text)
	if err != nil {
		return err
	}
	if found {
		return forget(ctx, h, n)
	}
	if c, found := d.channelNamed(h, text); found {
		return h.Channels.Remove(c)
	}
	c, err := h.Transcript(text)
	if err != nil {
		return err
	}
	switch {
	case c.File.Form != "" && !app.IsPath(text):
		return usage("it is a session of %s, which ollim only reads", c.File.Form)
	case app.IsPath(text) && !lies(c.File.Path, h.Dir.Sessions()):
		return usage("it is not in %s", h.Dir.Sessions())
	case !app.IsPath(text) && text != c.ID:
		return hint(usage("rm wants the full id"), "ollim session rm %s", c.ID)
	}
	err = h.DeleteTranscript(ctx, c)
	if used, ok := errors.AsType[*app.InUse](err); ok {
		return hint(err, "ollim session clear %s", used.Name.Text)
	}
	return err
}

// lies reports whether a file itself, not a link to it, is in a directory or below it.
func lies(path, folder string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	dir, dirErr := filepath.EvalSymlinks(filepath.Dir(path))
	dir, absErr := filepath.Abs(dir)
	folder, folderErr := filepath.EvalSymlinks(folder)
	rel, relErr := filepath.Rel(folder, dir)
	return errors.Join(dirErr, absErr, folderErr, relErr) == nil && rel != "." && filepath.IsLocal(rel)
}

// forget forgets a session; the hint says what to do while it is in use.
func forget(ctx context.Context, h app.Home, n app.SessionName) error {
	err := h.Forget(ctx, n)
	if n.Routine != "" && errors.Is(err, lock.ErrBusy) {
		return hint(&withStatus{errors.New("the routine is running"), statusTempFail}, "try again when its run has ended, or: ollim stop %s", n.Routine)
	}
	return err
}
