package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/job"
)

// Deps is what commands work with: the streams, the flags that all commands have, and the process's App. Nothing is opened before
// a command asks for it, so --help and completion touch no file.
type Deps struct {
	*app.App

	In     io.Reader
	Out    io.Writer // buffered standard output; on a terminal without control sequences
	Stdout io.Writer // the stream behind Out
	Stderr io.Writer
	// Automatic reports whether a cron daemon or a timer started this process.
	Automatic func() bool

	logFormat      string
	quiet, verbose bool
}

var errTooLong = errors.New("too long")

// shelf returns the job files, and warns of those that cannot be read, except those that the command is about, whose error it
// reports itself.
func (d *Deps) shelf(about ...string) (job.Set, app.Home, error) {
	h, err := d.Home()
	if err != nil {
		return job.Set{}, h, err
	}
	s, err := h.Jobs().Load()
	for _, fault := range s.Faults {
		if !slices.ContainsFunc(about, func(name string) bool { return stem(name) == stem(fault.File) }) {
			d.warn(fault.Error())
		}
	}
	return s, h, err
}

// stem is a job file's name without directory and .md.
func stem(path string) string { return strings.TrimSuffix(filepath.Base(path), ".md") }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
