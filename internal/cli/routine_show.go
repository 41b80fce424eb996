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
	failed := failures{d: d, verb: string(kind) + " show"}
	for _, name := range names {
		path, err := jobPath(s, h, kind, name)
		if err != nil {
			failed.add(name, err)
			continue
		}
		text, err := store.ReadText(path, maxShown, false)
		if err == nil {
			_, err = d.Out.Write(text)
		}
		failed.add(name, err)
	}
	return failed.err()
}
