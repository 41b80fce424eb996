package cli

import (
	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
)

func newJobShow(d *Deps, kind job.Kind) *cobra.Command {
	return &cobra.Command{
		Annotations: agentAll(),
		Use:         "show JOB...",
		Short:       "Print " + string(kind) + " files as they are",
		Args:        checked(cobra.MinimumNArgs(1)),
		RunE:        works(func(_ *cobra.Command, args []string) error { return runJobShow(d, kind, args) }),
	}
}

// maxShown is more than a job file may have, so that one that is too large can be looked at.
const maxShown = 64 << 20

func runJobShow(d *Deps, kind job.Kind, names []string) error {
	s, h, err := d.shelf(names...)
	if err != nil {
		return err
	}
	return d.each(string(kind)+" show", names, func(name string) error {
		path, err := jobPath(s, h, kind, name)
		if err != nil {
			return err
		}
		text, err := store.ReadText(path, maxShown, false)
		if err == nil {
			_, err = d.Out.Write(text)
		}
		return err
	})
}
