package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/config"
	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/yamldoc"
)

func newCheck(d *Deps) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Check job files and settings, and say when each routine fires next",
		Long: "Check reads every job file and config.yaml of the data directory, or the files it is given, which need not lie in one. " +
			"It prints a line FILE:LINE: KEY: REASON for everything that is wrong and exits 65 if there is any; for a good routine, a " +
			"line with its next fire.",
		Args: checked(cobra.ArbitraryArgs),
		RunE: works(func(_ *cobra.Command, args []string) error { return runCheck(d, args) }),
	}
}

func runCheck(d *Deps, files []string) error {
	c := checker{d: d, zone: time.UTC, ids: map[string]string{}}
	settings, err := d.config()
	if err == nil {
		c.zone = settings.Zone
	}
	if len(files) > 0 {
		for _, file := range files {
			c.file(file)
		}
		return c.verdict()
	}
	if err == nil && !settings.Exists {
		_, err := d.house() // says so
		return err
	}
	c.fault(err)
	dir, err := d.home()
	if err != nil {
		return err
	}
	shelf, err := job.Library{Home: dir}.Load()
	if err != nil {
		return err
	}
	if len(shelf.Faults) > 0 {
		c.fault(shelf.Faults)
	}
	for _, j := range shelf.Jobs {
		c.good(filepath.Join("routines", filepath.Base(j.Path)), j)
	}
	return c.verdict()
}

// checker counts what is wrong as it prints.
type checker struct {
	d    *Deps
	zone *time.Location
	bad  int
	ids  map[string]string // of the files given, to their paths
}

func (c *checker) file(path string) {
	if filepath.Ext(path) == ".yaml" {
		_, err := config.Load(config.Source{Path: path, Lookup: func(string) (string, bool) { return "", false }, Zone: "UTC"})
		if err == nil && !exists(path) {
			err = fmt.Errorf("%s: no such file or directory", path)
		}
		c.fault(err)
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		c.fault(fmt.Errorf("%s: %s", path, plain(err)))
		return
	}
	j, err := job.Parse(job.Routine, path, data)
	if err != nil {
		c.fault(err)
		return
	}
	if twin, taken := c.ids[j.ID]; taken {
		c.fault(fmt.Errorf("%s: id: %q is used twice, also in %s", path, j.ID, twin))
		return
	}
	c.ids[j.ID] = path
	c.good(path, j)
}

func (c *checker) fault(err error) {
	if err == nil {
		return
	}
	c.bad++
	var faults yamldoc.Faults
	if !errors.As(err, &faults) {
		_, _ = fmt.Fprintln(c.d.Out, printable(err.Error()))
		return
	}
	for _, f := range faults {
		_, _ = fmt.Fprintln(c.d.Out, printable(f.Error()))
	}
}

func (c *checker) good(path string, j job.Job) {
	next, ok := j.Schedule.Next(c.d.Now(), j.Zone(c.zone))
	switch {
	case !j.Enabled:
		_, _ = fmt.Fprintf(c.d.Out, "%s: ok: off\n", path)
	case len(j.Unsupported()) > 0:
		c.bad++
		_, _ = fmt.Fprintf(c.d.Out, "%s: %s: this version has no such thing yet, and a fire is refused\n", path, j.Unsupported()[0])
	case !ok:
		c.bad++
		_, _ = fmt.Fprintf(c.d.Out, "%s: cron: never fires\n", path)
	default:
		_, _ = fmt.Fprintf(c.d.Out, "%s: ok: next %s\n", path, clock(next.In(c.zone)))
	}
}

func (c *checker) verdict() error {
	if c.bad > 0 {
		return &reported{statusData}
	}
	return nil
}

// clock is a time as people read it, in its own zone.
func clock(t time.Time) string { return t.Format("Mon 2006-01-02 15:04 MST") }
