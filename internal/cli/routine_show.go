package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/job"
)

func newRoutineShow(d *Deps) *cobra.Command {
	return &cobra.Command{
		Use:   "show JOB...",
		Short: "Print routine files as they are",
		Args:  checked(cobra.MinimumNArgs(1)),
		RunE:  works(func(_ *cobra.Command, args []string) error { return runRoutineShow(d, args) }),
	}
}

func runRoutineShow(d *Deps, names []string) error {
	s, h, err := d.shelf(names...)
	if err != nil {
		return err
	}
	failed := failures{d: d, verb: "routine show"}
	for _, name := range names {
		path, err := routinePath(s.Only(job.Routine), h, name)
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
