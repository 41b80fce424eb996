package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/update"
)

func newUpdates(d *Deps) *cobra.Command {
	return group("update", "updates", "Manage pending updates: messages for the next conversation",
		newUpdatesList(d), newUpdatesPeek(d), newUpdatesAdd(d), newUpdatesPop(d), newUpdatesClear(d))
}

// updateRow is an update as listings show it; Became is "pending" until something happened to it.
type updateRow struct {
	TS      time.Time `json:"ts"`
	Message string    `json:"message"`
	Became  string    `json:"became,omitempty"`
	By      string    `json:"by,omitempty"`
	To      string    `json:"to,omitempty"`
}

func (r updateRow) cells() []string {
	cells := []string{r.TS.Format("2006-01-02 15:04:05"), r.Message}
	if r.Became != "" {
		cells = []string{cells[0], r.Became, cells[1]}
	}
	return cells
}

func rowsOf(updates []update.Update) []updateRow {
	rows := make([]updateRow, 0, len(updates))
	for _, u := range updates {
		rows = append(rows, updateRow{TS: u.TS, Message: u.Message})
	}
	return rows
}

func newUpdatesList(d *Deps) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Annotations: agentAll(),
		Use:         "list",
		Short:       "List pending updates, oldest first; they stay pending",
		Args:        checked(cobra.NoArgs),
		RunE: works(func(cmd *cobra.Command, _ []string) error {
			return runUpdatesList(cmd.Context(), d, all, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "include delivered, dropped and cleared updates, with what became of them")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

func runUpdatesList(ctx context.Context, d *Deps, all, asJSON bool) error {
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	var rows []updateRow
	if all {
		bad := 0
		for fate, err := range h.Updates().Archive(&bad) {
			if err != nil {
				return err
			}
			rows = append(rows, updateRow{fate.TS.In(h.Config.Zone), fate.Message, fate.Became, fate.By, fate.To})
		}
		if bad > 0 {
			d.warn(fmt.Sprintf("%s: %d lines cannot be read and are omitted", h.Dir.UpdateArchive(), bad))
		}
	}
	pending, err := h.Updates().Peek(ctx)
	if err != nil {
		return err
	}
	for _, row := range rowsOf(pending) {
		if all {
			row.Became = "pending"
		}
		rows = append(rows, row)
	}
	return records(d, asJSON, rows, updateRow.cells)
}

func newUpdatesPeek(d *Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Annotations: agentAll(),
		Use:         "peek",
		Short:       "List pending updates as a background run sees them",
		Args:        checked(cobra.NoArgs),
		RunE: works(func(cmd *cobra.Command, _ []string) error {
			return runUpdatesList(cmd.Context(), d, false, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

func newUpdatesAdd(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentOwn("report_updates"),
		Use:         "add MESSAGE...|-",
		Short:       "Add a pending update; - reads it from standard input",
		Example:     `  ollim update add "the backup disk is 91% full"`,
		Args:        checked(cobra.MinimumNArgs(1)),
		RunE: inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return runUpdatesAdd(ctx, d, h, args)
		}),
	}
}

func runUpdatesAdd(ctx context.Context, d *Deps, h app.Home, words []string) error {
	message, err := wordsOrInput(d, words)
	if err != nil {
		return err
	}
	if d.inside() {
		_, err := d.useTool(ctx, h, "report_updates", map[string]any{"message": message}) // the report counts
		return err
	}
	return h.Updates().Add(ctx, message, "owner")
}

func newUpdatesClear(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(nested),
		Use:         "clear",
		Short:       "Clear all pending updates; the archive keeps them",
		Args:        checked(cobra.NoArgs),
		RunE: inAnyHome(d, func(ctx context.Context, h app.Home, _ []string) error {
			n, err := h.Updates().Clear(ctx, "owner")
			d.note("cleared %d updates; see ollim update list --all", n)
			return err
		}),
	}
}
