package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/update"
)

func newUpdates(d *deps) *cobra.Command {
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
					_, err := d.useTool(ctx, h, "report_updates", map[string]any{"message": message}) // it counts as the run's report
					return err
				}
				return h.Updates.Add(ctx, message, "owner")
			})),
		newUpdatesPop(d),
		command(agentNever(nested), "clear", "Clear all pending updates; the archive keeps them",
			inAnyHome(d, func(ctx context.Context, h app.Home, _ []string) error {
				n, err := h.Updates.Clear(ctx, "owner")
				d.note("cleared %s; see ollim update list --all", plaintext.Count(n, "update"))
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
	cells := []any{r.ID, past(r.TS), prose(r.Message)}
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
		for fate, err := range h.Updates.Fates(time.Time{}) {
			if err != nil {
				return nil, err
			}
			rows = append(rows, updateRow{fate.ID(), fate.TS.In(h.Config.Zone), fate.Message, fate.Became, fate.By, fate.To})
		}
	}
	pending, err := h.Updates.Peek(ctx)
	return append(rows, rowsOf(pending, became)...), err
}
