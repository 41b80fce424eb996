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

	"github.com/ollim/ollim/internal/platform/order"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

type costRow struct {
	Key    string       `json:"key"`
	Runs   int          `json:"runs"`
	Cost   float64      `json:"cost"` // USD
	Tokens runlog.Usage `json:"tokens"`
}

func newCost(d *deps) *cobra.Command {
	var by, since string
	cmd := command(agentAll(), "cost", "Show the cost of runs: key, runs, USD, tokens in, tokens out",
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
	back, err := job.ParseDuration(since)
	if err != nil {
		return usage("--since %v", err)
	}
	h, err := d.Home()
	if err != nil {
		return err
	}
	sums := map[string]costRow{}
	for r, err := range h.Runs.Since(d.Now().Add(-back)) {
		if err != nil {
			return err
		}
		r = h.Runs.CutOff(r)
		if r.Turns == 0 && r.Cost == 0 {
			continue // it never reached an engine
		}
		row := sums[key(r)]
		sums[key(r)] = costRow{key(r), row.Runs + 1, row.Cost + r.Cost, row.Tokens.Add(r.Usage)}
	}
	rows := slices.Collect(maps.Values(sums))
	order.Sort(rows, func(a, b costRow) int { return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Key, b.Key)) })
	return records(d, strings.ToUpper(by)+" RUNS COST TOKENS-IN TOKENS-OUT", rows, func(r costRow) []any {
		in := r.Tokens.In + r.Tokens.CacheRead + r.Tokens.CacheWrite
		return []any{r.Key, strconv.Itoa(r.Runs), fmt.Sprintf("$%.4f", r.Cost), strconv.Itoa(in), strconv.Itoa(r.Tokens.Out)}
	})
}
