package cli

import (
	"context"
	"maps"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/config"
)

func newConfig(d *deps) *cobra.Command {
	return group("config", "Show and change settings",
		newList(d, agentNever(programs), "list", "List settings: key, value, origin", "KEY VALUE ORIGIN",
			func(context.Context) ([]config.Item, error) {
				c, err := d.Config()
				if err != nil {
					return nil, err
				}
				return c.Items(), nil
			}, func(i config.Item) []any { return []any{i.Key, prose(i.Text()), brief(i.Origin)} }),
		command(agentNever(programs), "get KEY", "Print the value of one setting", func(_ *cobra.Command, args []string) error {
			c, err := d.Config()
			if err != nil {
				return err
			}
			item, err := c.Get(args[0])
			if err != nil {
				return hint(err, "ollim config list")
			}
			return d.answer(item.Text(), nil)
		}), newConfigSet(d))
}

func newNames(d *deps) *cobra.Command {
	var user, bot string
	cmd := command(agentOwn("update_names"), "names [--user NAME] [--bot NAME]", "Show or set the names of the owner and the agent",
		inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runNames(ctx, d, h, user, bot) }))
	cmd.Args = cobra.NoArgs
	cmd.Flags().StringVar(&user, "user", "", "name of the owner")
	cmd.Flags().StringVar(&bot, "bot", "", "name of the agent")
	return withJSON(d, cmd, "print one JSON object")
}

func runNames(ctx context.Context, d *deps, h app.Home, user, bot string) error {
	switch {
	case d.json && user+bot != "":
		return usage("--json only prints names")
	case d.json:
		return d.emit(h.Config.Names)
	case user == "" && bot == "":
		rows := [][]string{{"user", h.Config.Names.User}, {"bot", h.Config.Names.Bot}}
		return records(d, "", rows, cellsOf)
	case d.inside():
		input := map[string]string{"user_name": user, "bot_name": bot}
		maps.DeleteFunc(input, func(_, name string) bool { return name == "" })
		_, err := d.useTool(ctx, h, "update_names", input)
		return err
	}
	return h.SetNames(user, bot)
}

func newModel(d *deps) *cobra.Command {
	return group("model", "Show the table of models",
		newList(d, agentAll(), "list", "List models: id, aliases, context window, maximum output, and USD per million tokens: in, out, cache read, "+
			"cache write", "ID ALIASES WINDOW OUTPUT IN OUT READ WRITE", d.models, modelRow.cells),
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

// longPrices are the prices of requests of more than Above tokens.
type longPrices struct {
	Above int `json:"above"`
	prices
}

func (r modelRow) cells() []any {
	cells := []any{r.ID, brief(strings.Join(r.Aliases, ",")), figure(r.Window), figure(r.Output)}
	if r.prices == nil {
		return append(cells, "", "", "", "")
	}
	return append(cells, usd(r.In), usd(r.Out), usd(r.CacheRead), usd(r.CacheWrite))
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
