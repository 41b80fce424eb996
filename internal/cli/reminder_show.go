package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/lock"
)

func newReminderShow(d *Deps) *cobra.Command {
	return &cobra.Command{
		Use:   "show REMINDER...",
		Short: "Print reminder files as they are",
		Args:  checked(cobra.MinimumNArgs(1)),
		RunE:  works(func(_ *cobra.Command, args []string) error { return runReminderShow(d, args) }),
	}
}

func runReminderShow(d *Deps, names []string) error {
	s, h, err := d.shelf(names...)
	if err != nil {
		return err
	}
	failed := failures{d: d, verb: "reminder show"}
	for _, name := range names {
		path, err := reminderPath(s.Only(job.Reminder), h, name)
		if err != nil {
			failed.add(name, err)
			continue
		}
		text, err := os.ReadFile(path)
		if err == nil {
			_, err = d.Out.Write(text)
		}
		failed.add(name, err)
	}
	return failed.err()
}

// running says whether a fire of the job is under way.
func (h house) running(j job.Job) bool { return !lock.Free(h.home.JobLock(j.ID)) }
