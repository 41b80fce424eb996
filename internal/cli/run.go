package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/runlog"
)

func newRun(d *Deps) *cobra.Command {
	return group("run", "runs", "Show run records",
		newRunList(d), newRunShow(d), newRunLog(d))
}

func newRunList(d *Deps) *cobra.Command {
	var n int
	var asJSON bool
	cmd := &cobra.Command{
		Annotations: agentAll(),
		Use:         "list [JOB]",
		Short:       "List runs, newest first: id, start, job, outcome, duration, cost, error",
		Args:        checked(cobra.MaximumNArgs(1)),
		RunE: inAnyHome(d, func(_ context.Context, h app.Home, args []string) error {
			return runRunList(d, h, strings.TrimSuffix(strings.Join(args, ""), ".md"), n, asJSON)
		}),
	}
	cmd.Flags().IntVarP(&n, "number", "n", 20, "maximum number of runs; 0 means all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line, as in run.json")
	return cmd
}

func runRunList(d *Deps, h app.Home, job string, n int, asJSON bool) error {
	if n < 0 {
		return usage("-n %d: want 0 or more", n)
	}
	t, shown := d.table(), 0
	show := func(r runlog.Record) error {
		if asJSON {
			return d.emit(r)
		}
		t.row(runCells(r)...)
		return nil
	}
	for r, err := range h.Runs().List() {
		if err != nil && r.ID == "" {
			return err
		}
		if err != nil {
			d.warn(err.Error())
			continue
		}
		if job != "" && job != r.Job && job != r.Name {
			continue
		}
		if err := show(cutOff(h, r)); err != nil {
			return err
		}
		if shown++; shown == n {
			break
		}
	}
	t.end()
	if shown == 0 && job != "" {
		shelf, err := h.Jobs().Load()
		if err != nil {
			return err
		}
		if _, err := shelf.Find(job); err != nil {
			return explain(err)
		}
	}
	return nil
}

// alive shows a run whose process died without a word as what it is; the next fire of its job writes that down.
func cutOff(h app.Home, r runlog.Record) runlog.Record {
	return h.Runs().CutOff(r)
}

func runCells(r runlog.Record) []string {
	outcome, took := string(r.Outcome), ""
	if outcome == "" {
		outcome = "running"
	}
	if r.Finished != nil {
		took = r.Finished.Sub(r.Started).Round(time.Millisecond).String()
	}
	return []string{r.ID, r.Started.Format("2006-01-02 15:04:05"), r.Name, outcome, took, fmt.Sprintf("$%.2f", r.Cost), r.Error}
}

func newRunShow(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentAll(),
		Use:         "show RUN...",
		Short:       "Print run records as JSON; RUN is an id, last, JOB or JOB~N",
		Long: "RUN is an id or its beginning, `last` (the newest record), or a job. A JOB means its run in progress, else " +
			"the latest that ran; skipped and paused fires count only if there is no other. JOB~N is the N-th run before the " +
			"latest.",
		Args: checked(cobra.MinimumNArgs(1)),
		RunE: inAnyHome(d, func(_ context.Context, h app.Home, args []string) error { return runRunShow(d, h, args) }),
	}
}

func runRunShow(d *Deps, h app.Home, names []string) error {
	return d.each("run show", names, func(name string) error {
		r, err := h.Runs().Find(name)
		if err == nil {
			e := json.NewEncoder(d.Out)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			err = e.Encode(cutOff(h, r))
		}
		return err
	})
}

func newRunLog(d *Deps) *cobra.Command {
	var follow, asJSON bool
	cmd := &cobra.Command{
		Annotations: agentAll(),
		Use:         "log RUN",
		Short:       "Print what a run did: prompt, tool calls with inputs and results, text, errors",
		Args:        checked(cobra.ExactArgs(1)),
		RunE: inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return runRunLog(ctx, d, h, args[0], follow, asJSON)
		}),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow the log until the run ends")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the events as they are recorded, one JSON object per line")
	return cmd
}

// followEvery is how often a followed log is read again.
const followEvery = 200 * time.Millisecond

func runRunLog(ctx context.Context, d *Deps, h app.Home, name string, follow, asJSON bool) error {
	r, err := h.Runs().Find(name)
	if err != nil {
		return err
	}
	if !asJSON {
		if err := d.printPrompt(h, r); err != nil {
			return err
		}
	}
	seen := 0
	for !follow || ctx.Err() == nil { // signals are handled from the first question on
		ended := r.Done() || cutOff(h, r).Outcome != "" // asked before reading: what came after is read in the next round
		if seen, err = d.printEvents(h, r.ID, seen, asJSON); err != nil {
			return err
		}
		if !follow || ended {
			return d.printEnd(cutOff(h, r), asJSON)
		}
		if err := d.flush(); err != nil {
			return err
		}
		if err := d.Sleep(ctx, followEvery); err != nil {
			return &reported{statusOf(err)} // the reader has seen enough
		}
		if r, err = h.Runs().Load(r.ID); err != nil {
			return err
		}
	}
	return &reported{statusOf(ctx.Err())}
}
