package cli

import (
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/store"
)

//go:embed demo
var demoFiles embed.FS

type demoOptions struct {
	keep    bool
	receive string
}

func (o *demoOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.keep, "keep", false, "keep the data directory")
	f.StringVar(&o.receive, "receive", "", "append standard input to a file: the demo's own delivery command")
	_ = f.MarkHidden("receive") // cannot fail: it was defined in the line above
}

func newDemo(d *Deps) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Annotations: agentNever(programs),
		Use:         "demo",
		Short:       "Show a routine at work in a temporary directory, without an account",
		Long: "Demo fires a persistent routine on three days of an invented week. A script takes the place of the model; " +
			"everything else is real. The session grows, the agent pings once and reports, the session is compacted by the " +
			"agent's instructions, and in the evening the main conversation receives the report. What is printed is read " +
			"back from the state files.",
		Args: checked(cobra.NoArgs),
		RunE: works(func(cmd *cobra.Command, _ []string) error {
			if o.receive != "" {
				return receive(d.In, o.receive)
			}
			return runDemo(cmd.Context(), d, o)
		}),
	}
	o.flags(cmd.Flags())
	return cmd
}

func receive(in io.Reader, path string) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	return store.AppendJSON(path, string(text), store.Buffered)
}

func runDemo(ctx context.Context, d *Deps, o demoOptions) (err error) {
	dir, err := os.MkdirTemp("", "ollim-demo-")
	if err != nil {
		return err
	}
	if !o.keep {
		defer func() {
			if removeErr := os.RemoveAll(dir); err == nil {
				err = removeErr
			}
		}()
	}
	show, err := d.prepareDemo(dir)
	if err != nil {
		return err
	}
	if err := show.play(ctx); err != nil {
		return err
	}
	return d.demoEnd(dir, o.keep)
}

// prepareDemo fills the directory with the demo's routines, scripts and settings.
func (d *Deps) prepareDemo(dir string) (*demo, error) {
	files, err := fs.Sub(demoFiles, "demo")
	if err != nil {
		return nil, err
	}
	if err := copyFiles(dir, files); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	inbox := filepath.Join(dir, "delivered.jsonl")
	settings := fmt.Sprintf("timezone: America/New_York\ndelivery:\n  command: [%q, demo, --receive, %q]\n", self, inbox)
	if err := store.Replace(filepath.Join(dir, "config.yaml"), []byte(settings)); err != nil {
		return nil, err
	}
	inside := *d
	inside.Stdout = d.Out
	inside.App = &app.App{ // without a terminal: what is for the owner goes through the delivery command
		Now: d.Now, Random: d.Random, Sleep: d.Sleep, Warn: d.warn, Commands: d.Commands,
		DataDir: dir, ConfigPath: filepath.Join(dir, "config.yaml"),
		Lookup: func(name string) (string, bool) { // the caller's settings are not the demo's
			if name == "HOME" || name == "PATH" {
				return d.Lookup(name)
			}
			return "", false
		},
	}
	return &demo{d: &inside, inbox: inbox}, nil
}

// copyFiles gives files the permissions of a data directory.
func copyFiles(dir string, files fs.FS) error {
	return fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return store.Replace(filepath.Join(dir, path), text)
	})
}

func (d *Deps) demoEnd(dir string, keep bool) error {
	if keep {
		_, err := fmt.Fprintf(d.Out, "The directory was kept. To look around in it:\n"+
			"  export OLLIM_DATA_DIR=%s\n"+
			"  ollim run list\n"+
			"  ollim run log daily-market\n"+
			"  ollim update list --all\n"+
			"  ollim schedule list -n 5\n"+
			"  cat $OLLIM_DATA_DIR/state/session_history.jsonl\n", dir)
		return err
	}
	_, err := fmt.Fprint(d.Out, "The temporary directory has been removed. Next:\n"+
		"  ollim demo --keep      run the demo again and keep the directory\n"+
		"  ollim init             create your own data directory, with a sample routine\n"+
		"  ollim help             list the commands; ollim(7) is the manual to begin with\n")
	return err
}

// demoStart is a Monday, 9:00 in New York, when the demo's routine fires.
func demoStart() time.Time { return time.Date(2026, time.March, 2, 14, 0, 0, 0, time.UTC) }
