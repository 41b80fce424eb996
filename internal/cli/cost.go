package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/overview"
	"github.com/ollim/ollim/internal/state/runlog"
)

type costRow struct {
	Key    string       `json:"key"`
	Runs   int          `json:"runs"`
	Cost   float64      `json:"cost"` // USD
	Tokens runlog.Usage `json:"tokens"`
	overview.Trend
}

func newCost(d *deps) *cobra.Command {
	var by, since string
	cmd := command(agentAll(), "cost", "Show the cost of runs: key, runs, USD, tokens in, cached share, tokens out, share, growth, context",
		func(*cobra.Command, []string) error { return runCost(d, by, since) })
	cmd.Flags().StringVar(&by, "by", "job", "group by job, day or model")
	cmd.Flags().StringVar(&since, "since", "30d", "how far to look back; more than two days begin with a whole day")
	return withJSON(d, cmd, jsonLines)
}

func runCost(d *deps, by, since string) error {
	keys := map[string]func(t *runlog.Tally, model string) string{
		"job":   func(t *runlog.Tally, _ string) string { return t.Newest.Name },
		"day":   func(t *runlog.Tally, _ string) string { return t.Date },
		"model": func(_ *runlog.Tally, model string) string { return cmp.Or(model, "default") },
	}
	key, ok := keys[by]
	if !ok {
		return usage("--by %q: want job, day or model", by)
	}
	from, err := d.since(since)
	if err != nil {
		return err
	}
	h, err := d.Home()
	if err != nil {
		return err
	}
	rows, err := costRows(h, from, key, by == "job")
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		d.note("no run has reached an engine since %s", shownTime(inZone(from, h)))
	}
	columns, more := strings.ToUpper(by)+" RUNS COST IN CACHED OUT SHARE", 1
	if by == "job" {
		columns, more = columns+" GROWTH CONTEXT", 3
	}
	return records(d, columns, rows, func(r costRow) []any {
		in := r.Tokens.In + r.Tokens.CacheRead + r.Tokens.CacheWrite
		cached := fmt.Sprintf("%d %%", 100*r.Tokens.CacheRead/max(1, in))
		cells := []any{brief(r.Key), strconv.Itoa(r.Runs), fmt.Sprintf("$%.4f", r.Cost), strconv.Itoa(in), cached, strconv.Itoa(r.Tokens.Out)}
		return append(cells, trendCells(r.Trend)[:more]...)
	})
}

// costRows sums the runs since an instant by key, the costliest first. It omits keys without a run that reached an engine. With trends the
// keys are names of jobs.
func costRows(h app.Home, from time.Time, key func(t *runlog.Tally, model string) string, trends bool) ([]costRow, error) {
	bill := overview.NewBill(h.Disk.Now(), h.Config.Zone)
	if trends {
		if _, err := bill.Read(h.Runs); err != nil {
			return nil, err
		}
	}
	since, err := h.Runs.Tally(from)
	if err != nil {
		return nil, err
	}
	for _, err := range since.Unreadable {
		h.Disk.Warn(err.Error())
	}
	uses, ids, all := map[string]runlog.Use{}, map[string]string{}, 0.0
	for _, t := range since.Tallies {
		for model, use := range t.Models {
			k := key(t, model)
			uses[k], ids[k], all = uses[k].Add(use), t.Job, all+use.Cost
		}
	}
	rows := []costRow{}
	for k, use := range uses {
		if !use.Reached {
			continue
		}
		row := costRow{Key: k, Runs: use.Runs, Cost: use.Cost, Tokens: use.Usage}
		if trends {
			row.Trend = bill.Trend(ids[k], from)
		}
		if row.Share = 0; all > 0 {
			row.Share = row.Cost / all
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b costRow) int { return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Key, b.Key)) })
	return rows, nil
}
