package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/task"
)

func newTaskEdit(d *Deps) *cobra.Command {
	var priority string
	cmd := &cobra.Command{
		Annotations: agentAll(),
		Use:         "edit TASK TEXT...|-",
		Short:       "Replace the text of a task",
		Long: taskNames + "TEXT replaces the whole text, including due: and +PROJECTs; - reads it from standard input. The creation date " +
			"is kept, and so is the priority unless TEXT begins with another.",
		Example: "  ollim task edit 3 Call the plumber again +house due:2027-02-01\n  ollim task edit 3 --priority none Call the plumber",
		Args:    checked(cobra.MinimumNArgs(2)),
		RunE: inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return runTaskEdit(ctx, d, h, args[0], args[1:], priority)
		}),
	}
	cmd.Flags().StringVar(&priority, "priority", "", "priority, a letter from A (highest) to Z, or none; same as (A) at the beginning of TEXT")
	return cmd
}

func runTaskEdit(ctx context.Context, d *Deps, h app.Home, name string, words []string, priority string) error {
	priority, err := taskPriority(priority)
	if err != nil {
		return err
	}
	text, err := taskText(d, words)
	if err != nil {
		return err
	}
	t, err := h.Tasks().Edit(ctx, name, task.Draft{Text: text, Priority: priority})
	if err == nil {
		d.note("now: %d %s", t.Number, printable(t.Text))
	}
	return taskError(err)
}
