package cli

import (
	"cmp"
	"fmt"
	"maps"
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
	cmd := command(agentAll(), "cost", "Show the cost of runs: key, runs, USD, tokens in, tokens out, share, growth, context",
		func(*cobra.Command, []string) error { return runCost(d, by, since) })
	cmd.Flags().StringVar(&by, "by", "job", "group by job, day or model")
	cmd.Flags().StringVar(&since, "since", "30d", "how far to look back")
	return withJSON(d, cmd, jsonLines)
}

func runCost(d *deps, by, since string) error {
	keys := map[string]func(runlog.Record) string{
		"job":   func(r runlog.Record) string { return r.Name },
		"day":   func(r runlog.Record) string { return r.Started.Format(time.DateOnly) },
		"model": func(r runlog.Record) string { return cmp.Or(r.Model, "default") },
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
	columns, more := strings.ToUpper(by)+" RUNS COST TOKENS-IN TOKENS-OUT SHARE", 1
	if by == "job" {
		columns, more = columns+" GROWTH CONTEXT", 3
	}
	return records(d, columns, rows, func(r costRow) []any {
		in := r.Tokens.In + r.Tokens.CacheRead + r.Tokens.CacheWrite
		cells := []any{brief(r.Key), strconv.Itoa(r.Runs), fmt.Sprintf("$%.4f", r.Cost), strconv.Itoa(in), strconv.Itoa(r.Tokens.Out)}
		return append(cells, trendCells(r.Trend)[:more]...)
	})
}

// costRows sums the runs since an instant by key, the costliest first. It omits keys without a run that reached an engine. With trends the
// keys are ids of jobs.
func costRows(h app.Home, from time.Time, key func(runlog.Record) string, trends bool) ([]costRow, error) {
	bill, since := overview.NewBill(h.Disk.Now(), h.Config.Zone), from
	if trends && bill.Since().Before(since) {
		since = bill.Since()
	}
	sums, ids, reached, all := map[string]costRow{}, map[string]string{}, map[string]bool{}, 0.0
	for r, err := range h.Runs.Since(since) {
		if err != nil {
			return nil, err
		}
		r = h.Runs.CutOff(r)
		bill.Add(r)
		if !r.TookPlace() || r.Started.Before(from) {
			continue // the run did not take place, or counts only for the trend
		}
		k := key(r)
		row := sums[k]
		row.Key, row.Runs, row.Cost, row.Tokens = k, row.Runs+1, row.Cost+r.Cost, row.Tokens.Add(r.Usage)
		sums[k], ids[k], all = row, r.Job, all+r.Cost
		reached[k] = reached[k] || r.Turns > 0 || r.Cost > 0
	}
	maps.DeleteFunc(sums, func(k string, _ costRow) bool { return !reached[k] })
	rows := slices.Collect(maps.Values(sums))
	for i := range rows {
		if trends {
			rows[i].Trend = bill.Trend(ids[rows[i].Key], from)
		}
		if rows[i].Share = 0; all > 0 {
			rows[i].Share = rows[i].Cost / all
		}
	}
	slices.SortStableFunc(rows, func(a, b costRow) int { return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Key, b.Key)) })
	return rows, nil
}
