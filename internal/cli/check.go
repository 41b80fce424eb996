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
	"github.com/ollim/ollim/internal/skill"
	"github.com/ollim/ollim/internal/yamldoc"
)

func newCheck(d *Deps) *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Check job files, skills and settings, and say when each job fires next",
		Long: "Check reads every job file, every skill, config.yaml and tool-policy.yaml of the data directory, or the files it is given, " +
			"which need not lie in one: a folder named reminders makes a file a reminder. " +
			"It prints a line FILE:LINE: KEY: REASON for everything that is wrong and exits 65 if there is any; for a good job, a " +
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
	shelf, err := job.Library{Home: dir, Zone: c.zone}.Load()
	if err != nil {
		return err
	}
	if len(shelf.Faults) > 0 {
		c.fault(shelf.Faults)
	}
	for _, j := range shelf.Jobs {
		c.good(filepath.Join(filepath.Base(filepath.Dir(j.Path)), filepath.Base(j.Path)), j)
	}
	_, err = config.LoadTools(dir.ToolPolicy())
	c.fault(err)
	_, faults, err := skill.Library{Home: dir}.Load()
	c.fault(err)
	if len(faults) > 0 {
		c.fault(faults)
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
	switch base := filepath.Base(path); {
	case base == "tool-policy.yaml":
		_, err := config.LoadTools(path)
		if err == nil && !exists(path) {
			err = fmt.Errorf("%s: no such file or directory", path)
		}
		c.fault(err)
		return
	case filepath.Ext(path) == ".yaml":
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
	if filepath.Base(path) == "SKILL.md" {
		_, err := skill.Parse(filepath.Base(filepath.Dir(path)), path, data)
		c.fault(err)
		return
	}
	j, err := job.Parse(job.KindOf(path), path, data)
	j = j.In(c.zone)
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
	next, ok := time.Time{}, false
	if j.Kind == job.Reminder {
		next, ok = j.RunAt, true
	} else {
		next, ok = j.Schedule.Next(c.d.Now(), j.Zone(c.zone))
	}
	state := "next "
	if !next.After(c.d.Now()) {
		state = "due since "
	}
	switch {
	case !j.Enabled:
		_, _ = fmt.Fprintf(c.d.Out, "%s: ok: off\n", path)
	case !ok:
		c.bad++
		_, _ = fmt.Fprintf(c.d.Out, "%s: cron: never fires\n", path)
	default:
		_, _ = fmt.Fprintf(c.d.Out, "%s: ok: %s%s\n", path, state, clock(next.In(c.zone)))
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
