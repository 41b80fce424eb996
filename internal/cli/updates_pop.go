package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/state/update"
)

func newUpdatesPop(d *Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Annotations: agentNever(nested),
		Use:         "pop [-- COMMAND ARG...]",
		Short:       "Print pending updates and remove them",
		Long: "Pop prints what list prints and then removes it, once it has been written. With a COMMAND it pipes the " +
			"updates into it and removes them only if the command exits 0. The archive keeps everything: ollim update list " +
			"--all.",
		Example: "  ollim update pop -- mail -s updates me",
		Args:    checked(cobra.ArbitraryArgs),
		RunE: works(func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return usage("want: ollim update pop [-- COMMAND ARG...]")
			}
			return runUpdatesPop(cmd.Context(), d, args, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

func runUpdatesPop(ctx context.Context, d *Deps, command []string, asJSON bool) error {
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	claim, err := h.Updates().Pop(ctx, update.Owner{})
	if err != nil || len(claim.Updates) == 0 {
		return err
	}
	if err := d.hand(ctx, claim.Updates, command, asJSON); err != nil {
		return errors.Join(err, claim.Return(context.WithoutCancel(ctx)))
	}
	return claim.Deliver(context.WithoutCancel(ctx))
}

// hand writes the updates to standard output or into the command, and returns when they have been taken.
func (d *Deps) hand(ctx context.Context, updates []update.Update, command []string, asJSON bool) error {
	if len(command) == 0 {
		if err := records(d, asJSON, rowsOf(updates), updateRow.cells); err != nil {
			return err
		}
		return d.flush()
	}
	var text bytes.Buffer
	piped := *d
	piped.Out, piped.Stdout = &text, &text
	if err := records(&piped, asJSON, rowsOf(updates), updateRow.cells); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &text, d.Stdout, d.Stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: the updates stay pending", ctx.Err())
		}
		return fmt.Errorf("%s: %w: the updates stay pending", command[0], err)
	}
	return nil
}
