package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/man"
)

func newMan(d *deps) *cobra.Command {
	return group("man", "Install the manual pages",
		command(agentNever(refused), "install [DIR]", "Install the manual pages for man",
			func(cmd *cobra.Command, args []string) error {
				return runManInstall(cmd.Context(), d, strings.Join(args, "")) // one at most
			}),
	)
}

func runManInstall(ctx context.Context, d *deps, dir string) error {
	if dir == "" {
		var err error
		if dir, err = d.manDir(); err != nil {
			return err
		}
	}
	if packed := filepath.Join(dir, "man1", "ollim.1.gz"); exists(packed) {
		return &withStatus{fmt.Errorf("%s: a package has installed the manuals there", packed), statusConfig}
	}
	installed, err := installPages(ctx, dir)
	if errors.Is(err, fs.ErrPermission) {
		return hint(err, "ollim man install ~/.local/share/man")
	}
	if err == nil {
		d.note("%d pages installed in %s; to read the first: man 7 ollim", installed, dir)
	}
	return err
}

// manDir is where man looks for the pages of programs that are where this one is.
func (d *deps) manDir() (string, error) {
	program, err := program()
	if err != nil {
		return "", err
	}
	if bin := filepath.Dir(program); filepath.Base(bin) == "bin" {
		return filepath.Join(filepath.Dir(bin), "share", "man"), nil
	}
	home, err := d.UserHome()
	return filepath.Join(home, ".local", "share", "man"), err
}

// installPages writes all pages, deletes those of other versions, and returns how many it has written.
func installPages(ctx context.Context, dir string) (installed int, err error) {
	pages, err := fs.Glob(man.Pages(), "*.[157]")
	if err != nil {
		return 0, err
	}
	current := map[string]bool{}
	for _, name := range pages {
		text, err := fs.ReadFile(man.Pages(), name)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return installed, err
		}
		folder := filepath.Join(dir, "man"+name[len(name)-1:])
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // everybody may read manuals
			return installed, &store.NotWritten{Path: folder, Err: err}
		}
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // as above
			return installed, &store.NotWritten{Path: path, Err: err}
		}
		current[path] = true
		installed++
	}
	for _, pattern := range []string{"man[157]/ollim.[157]", "man[157]/ollim-*.[157]"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return installed, err
		}
		for _, path := range found {
			if !current[path] {
				if err := os.Remove(path); err != nil {
					return installed, err
				}
			}
		}
	}
	return installed, nil
}
