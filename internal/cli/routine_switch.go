package cli

import (
	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
)

func newRoutineSwitch(d *Deps, verb, short string, on bool) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(nested),
		Use:         verb + " JOB...",
		Short:       short,
		Args:        checked(cobra.MinimumNArgs(1)),
		RunE:        works(func(_ *cobra.Command, args []string) error { return runRoutineSwitch(d, "routine "+verb, args, on) }),
	}
}

func runRoutineSwitch(d *Deps, verb string, names []string, on bool) error {
	s, _, err := d.shelf(names...)
	if err != nil {
		return err
	}
	return d.each(verb, names, func(name string) error {
		return switchRoutine(s.Only(job.Routine), name, on)
	})
}

func switchRoutine(s job.Set, name string, on bool) error {
	j, err := s.Find(name)
	if err != nil {
		return explain(err)
	}
	if j.Enabled == on {
		return nil
	}
	text, err := j.WithEnabled(on)
	if err != nil {
		return &withStatus{err, statusData}
	}
	return store.Replace(j.Path, text)
}
