package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
)

func newTaskRm(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentAll(),
		Use:         "rm TASK...",
		Short:       "Delete tasks; the other tasks keep their numbers",
		Long: taskNames + "The line is left blank, so that a number never changes its meaning. To remove blank lines, use an editor while " +
			"no program is using the file.",
		Args: checked(cobra.MinimumNArgs(1)),
		RunE: inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error { return runTaskRm(ctx, d, h, args) }),
	}
}

// runTaskRm removes one after the other, which it may because numbers stay.
func runTaskRm(ctx context.Context, d *Deps, h app.Home, names []string) error {
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
