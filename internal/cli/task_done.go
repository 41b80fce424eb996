package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
)

func newTaskDone(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentAll(),
		Use:         "done TASK...",
		Short:       "Mark tasks as done today",
		Long: taskNames + "The line becomes `x DATE`, followed by its creation date and text; a priority (A) is kept as pri:A. " +
			"Numbers do not change, and a task that is already done stays as it is.",
		Example: "  ollim task done 3\n  ollim task done plumber",
		Args:    checked(cobra.MinimumNArgs(1)),
		RunE:    inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error { return runTaskDone(ctx, d, h, args) }),
	}
}

func runTaskDone(ctx context.Context, d *Deps, h app.Home, names []string) error {
	failed := failures{d: d, verb: "task done"}
	for _, name := range names {
		t, err := h.Tasks().Done(ctx, name)
		if err == nil {
			d.note("done: %d %s", t.Number, printable(t.Text))
		}
		failed.add("", taskError(err))
	}
	return failed.err()
}
