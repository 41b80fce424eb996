package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/model"
)

func newModel(d *deps) *cobra.Command {
	return group("model", "Show the table of models, check those in use, and update it",
		newList(d, agentAll(), "list", "List models: id, aliases, context window, maximum output, USD per million tokens (in, out, "+
			"cache read, cache write), whether the service lists it, retirement date, and what uses it",
			"ID ALIASES WINDOW OUTPUT IN OUT READ WRITE LISTED RETIRES USED-BY", d.models, modelRow.cells),
		newModelCheck(d), newModelUpdate(d), newModelMove(d),
	)
}

type modelRow struct {
	ID      string   `json:"id"`
	Aliases []string `json:"aliases"`
	Window  int      `json:"window,omitempty"` // tokens
	Output  int      `json:"output,omitempty"`
	*prices
	Long    *longPrices `json:"long,omitempty"`
	Default bool        `json:"default,omitempty"`
	Listed  *bool       `json:"listed,omitempty"`
	Retires string      `json:"retires,omitempty"` // a day
	UsedBy  []string    `json:"used_by,omitempty"`
}

// prices are in USD for a million tokens.
type prices struct {
	In         float64 `json:"in"`
	Out        float64 `json:"out"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// longPrices are the prices of requests of more than Above tokens.
type longPrices struct {
	Above int `json:"above"`
	prices
}

func (r modelRow) cells() []any {
	cells := []any{printable(r.ID), brief(strings.Join(r.Aliases, ",")), figure(r.Window), figure(r.Output)}
	if r.prices == nil {
		cells = append(cells, "", "", "", "")
	} else {
		cells = append(cells, usd(r.In), usd(r.Out), usd(r.CacheRead), usd(r.CacheWrite))
	}
	listed := ""
	if r.Listed != nil {
		listed = map[bool]string{true: "yes", false: "no"}[*r.Listed]
	}
	return append(cells, listed, r.Retires, brief(strings.Join(r.UsedBy, ",")))
}

func usd(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func (d *deps) models(context.Context) (rows []modelRow, err error) {
	h, err := d.NewHome()
	if err != nil {
		return nil, err
	}
	table, err := h.Models()
	if err != nil {
		return nil, err
	}
	listed, strange, err := h.ListedModels(table)
	if err != nil {
		return nil, err
	}
	standard := table.Resolve(h.Config.Native.Model).Entry
	for _, m := range table.Models() {
		rows = append(rows, rowOf(m, listed[m.ID], m.ID == standard))
	}
	for _, id := range strange {
		rows = append(rows, rowOf(model.Model{ID: id}, listed[id], false))
	}
	return rows, nil
}

func rowOf(m model.Model, l app.ListedModel, standard bool) modelRow {
	row := modelRow{
		ID: m.ID, Aliases: append([]string{}, m.Aliases...), // [], never null
		Window: m.Window, Output: m.Output, Default: standard, Listed: l.Listed, Retires: l.Retires, UsedBy: l.UsedBy,
	}
	if m.Priced {
		row.prices = &prices{m.Price.In, m.Price.Out, m.Price.CacheRead, m.Price.CacheWrite}
	}
	if m.Long > 0 {
		row.Long = &longPrices{m.Long, prices{m.LongPrice.In, m.LongPrice.Out, m.LongPrice.CacheRead, m.LongPrice.CacheWrite}}
	}
	return row
}
