package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/update"
)

func newUpdates(d *deps) *cobra.Command {
	pop := command(agentNever(nested), "pop [-- COMMAND ARG...]", "Print pending updates and remove them",
		func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
				return usage("want: ollim update pop [-- COMMAND ARG...]")
			}
			return runUpdatesPop(cmd.Context(), d, args)
		})
	pop.Args = cobra.ArbitraryArgs
	return group("update", "Manage pending updates: messages for the next conversation",
		newUpdatesList(d),
		newList(d, agentAll(), "peek", "List pending updates as a background run sees them", updateColumns,
			func(ctx context.Context) ([]updateRow, error) { return d.updates(ctx, false) }, updateRow.cells),
		command(agentOwn("report_updates"), "add MESSAGE...|-", "Add a pending update; - reads it from standard input",
			inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
				message, err := wordsOrInput(d, args)
				if err != nil {
					return err
				}
				if d.inside() {
					_, err := d.useTool(ctx, h, "report_updates", map[string]any{"message": message}) // the report counts
					return err
				}
				return h.Updates.Add(ctx, message, "owner")
			})),
		withJSON(d, pop, jsonLines),
		command(agentNever(nested), "clear", "Clear all pending updates; the archive keeps them",
			inAnyHome(d, func(ctx context.Context, h app.Home, _ []string) error {
				n, err := h.Updates.Clear(ctx, "owner")
				d.note("cleared %d updates; see ollim update list --all", n)
				return err
			})),
	)
}

// updateRow is an update as listings show it; Became is "pending" until something happened to it.
type updateRow struct {
	ID      string    `json:"id"`
	TS      time.Time `json:"ts"`
	Message string    `json:"message"`
	Became  string    `json:"became,omitempty"`
	By      string    `json:"by,omitempty"`
	To      string    `json:"to,omitempty"`
}

func (r updateRow) cells() []any {
	cells := []any{r.ID, past(r.TS), r.Message}
	if r.Became != "" {
		cells = slices.Insert(cells, 2, any(state(r.Became)))
	}
	return cells
}

func rowsOf(updates []update.Update, became string) (rows []updateRow) {
	for _, u := range updates {
		rows = append(rows, updateRow{ID: u.ID(), TS: u.TS, Message: u.Message, Became: became})
	}
	return rows
}

func newUpdatesList(d *deps) *cobra.Command {
	var all bool
	cmd := command(agentAll(), "list", "List pending updates, oldest first; they stay pending",
		func(cmd *cobra.Command, _ []string) error {
			rows, err := d.updates(cmd.Context(), all)
			columns := updateColumns
			if all {
				columns = "ID TIME BECAME MESSAGE"
			}
			if err != nil {
				return err
			}
			return records(d, columns, rows, updateRow.cells)
		})
	cmd.Flags().BoolVar(&all, "all", false, "include delivered, dropped and cleared updates, with what became of them")
	return withJSON(d, cmd, jsonLines)
}

const updateColumns = "ID TIME MESSAGE"

func (d *deps) updates(ctx context.Context, all bool) (rows []updateRow, err error) {
	h, err := d.AnyHome()
	if err != nil {
		return nil, err
	}
	became := ""
	if all {
		became = "pending"
		bad := 0
		for fate, err := range h.Updates.Archive(&bad) {
			if err != nil {
				return nil, err
			}
			rows = append(rows, updateRow{fate.ID(), fate.TS.In(h.Config.Zone), fate.Message, fate.Became, fate.By, fate.To})
		}
		d.warnOmitted(h.Dir.UpdateArchive(), bad, "line")
	}
	pending, err := h.Updates.Peek(ctx)
	return append(rows, rowsOf(pending, became)...), err
}

func runUpdatesPop(ctx context.Context, d *deps, command []string) error {
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	claim, err := h.Updates.Pop(ctx, update.Owner{})
	if err != nil || len(claim.Updates) == 0 {
		return err
	}
	if err := d.hand(ctx, claim.Updates, command); err != nil {
		return errors.Join(err, claim.Return(context.WithoutCancel(ctx)))
	}
	return claim.Deliver(context.WithoutCancel(ctx))
}

// hand writes the updates to standard output or into the command, and returns when they have been taken.
func (d *deps) hand(ctx context.Context, updates []update.Update, command []string) error {
	var text bytes.Buffer
	to := *d
	to.pager = nil // they are removed once they have been written
	if len(command) > 0 {
		to.Out, to.Stdout = &text, &text
	}
	if err := records(&to, updateColumns, rowsOf(updates, ""), updateRow.cells); err != nil {
		return err
	}
	if len(command) == 0 {
		return d.flush()
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
