package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func newModel(d *deps) *cobra.Command {
	return group("model", "The table of models",
		newList(d, agentAll(), "list", "List models: id, aliases, context window, maximum output, and USD per million tokens: in, out, cache read, "+
			"cache write", "ID ALIASES WINDOW OUTPUT IN OUT CACHE-READ CACHE-WRITE", d.models, modelRow.cells),
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
}

// prices are in USD for a million tokens.
type prices struct {
	In         float64 `json:"in"`
	Out        float64 `json:"out"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// longPrices are those of questions of more than Above tokens.
type longPrices struct {
	Above int `json:"above"`
	prices
}

func (r modelRow) cells() []any {
	cells := []any{r.ID, strings.Join(r.Aliases, ","), tokens(r.Window), tokens(r.Output)}
	if r.prices == nil {
		return append(cells, "", "", "", "")
	}
	return append(cells, usd(r.In), usd(r.Out), usd(r.CacheRead), usd(r.CacheWrite))
}

func tokens(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
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
	standard := table.Resolve(h.Config.Native.Model).Entry
	for _, m := range table.Models() {
		row := modelRow{
			ID: m.ID, Aliases: append([]string{}, m.Aliases...), // [], never null
			Window: m.Window, Output: m.Output, Default: m.ID == standard,
		}
		if m.Priced {
			row.prices = &prices{m.Price.In, m.Price.Out, m.Price.CacheRead, m.Price.CacheWrite}
		}
		if m.Long > 0 {
			row.Long = &longPrices{m.Long, prices{m.LongPrice.In, m.LongPrice.Out, m.LongPrice.CacheRead, m.LongPrice.CacheWrite}}
		}
		rows = append(rows, row)
	}
	return rows, nil
}
