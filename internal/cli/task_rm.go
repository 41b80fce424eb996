package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newTaskRm(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentAll(),
		Use:         "rm TASK...",
		Short:       "Delete tasks, done or not; the other tasks keep their numbers",
		Long: taskNames + "The line is left blank, so that no number ever means another task than it did; take blank lines out with an " +
			"editor when nobody is at work.",
		Args: checked(cobra.MinimumNArgs(1)),
		RunE: works(func(cmd *cobra.Command, args []string) error { return runTaskRm(cmd.Context(), d, args) }),
	}
}

// runTaskRm removes one after the other, which it may because numbers stay.
func runTaskRm(ctx context.Context, d *Deps, names []string) error {
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	failed := failures{d: d, verb: "task rm"}
	for _, name := range names {
		t, err := h.Tasks().Remove(ctx, name)
		if err == nil {
			d.note("deleted: %d %s", t.Number, printable(t.Text))
		}
		failed.add("", taskError(err))
	}
	return failed.err()
}
