package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/state/model"
)

// modelRow is a model as listings show it. What is not known is left out.
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

func (r modelRow) cells() []string {
	cells := []string{r.ID, strings.Join(r.Aliases, ","), tokens(r.Window), tokens(r.Output)}
	if r.prices == nil {
		return append(cells, "", "", "", "")
	}
	return append(cells, usd(r.In), usd(r.Out), usd(r.CacheRead), usd(r.CacheWrite))
}

// tokens is a number of them, "" when it is not known.
func tokens(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func usd(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func newModelList(d *Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Annotations: agentAll(),
		Use:         "list",
		Short:       "List models: id, aliases, window, most output, USD for a million tokens in, out, read from cache, written to cache",
		Long: "List prints the table of models that comes with the program, with what the key models of the settings changes in it. " +
			"The window and the most output of one answer are in tokens. What is not known is left empty. Some models take more for long " +
			"questions: --json tells that too, and which model is the default of the native engine.",
		Args: checked(cobra.NoArgs),
		RunE: works(func(*cobra.Command, []string) error { return runModelList(d, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

func runModelList(d *Deps, asJSON bool) error {
	h, err := d.NewHome()
	if err != nil {
		return err
	}
	table, err := h.Models()
	if err != nil {
		return err
	}
	standard := table.Resolve(h.Config.Native.Model).Entry
	var rows []modelRow
	for _, m := range table.Models() {
		row := rowOfModel(m)
		row.Default = m.ID == standard
		rows = append(rows, row)
	}
	return records(d, asJSON, rows, modelRow.cells)
}

func rowOfModel(m model.Model) modelRow {
	row := modelRow{ID: m.ID, Aliases: append([]string{}, m.Aliases...), Window: m.Window, Output: m.Output} // [], never null
	if m.Priced {
		row.prices = &prices{m.Price.In, m.Price.Out, m.Price.CacheRead, m.Price.CacheWrite}
	}
	if m.Long > 0 {
		row.Long = &longPrices{m.Long, prices{m.LongPrice.In, m.LongPrice.Out, m.LongPrice.CacheRead, m.LongPrice.CacheWrite}}
	}
	return row
}
