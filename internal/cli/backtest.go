package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// backtestOptions are the options of a backtest.
type backtestOptions struct {
	model, thinking, prompt, engine, since, judge string
	last, parallel                                int
	runs, live                                    []string
	baseline, yes                                 bool
	maxCost                                       float64
}

func newBacktest(d *deps) *cobra.Command {
	var o backtestOptions
	cmd := command(agentNever(refused), "backtest JOB", "Ask recorded runs of a job again, with another model or prompt, and compare what the agent decides", nil)
	f := cmd.Flags()
	f.StringVar(&o.model, "model", "", "ask this `model`")
	f.StringVar(&o.engine, "engine", "native", "engine that asks the model (only native)")
	f.StringVar(&o.prompt, "prompt", "", "put the text of this `file` (- is standard input) in place of the job's body")
	f.StringVar(&o.thinking, "thinking", "", "how much the model thinks: off, adaptive or a number of tokens")
	f.IntVar(&o.last, "last", 30, "ask the last `N` runs")
	f.StringVar(&o.since, "since", "", "ask all runs of the last `TIME` instead, such as 60d")
	f.StringArrayVar(&o.runs, "run", nil, "ask the run with this `ID` instead of the last ones (repeatable)")
	f.BoolVar(&o.baseline, "baseline", false, "also ask each run without a change, to see how often the model differs from itself")
	f.StringVar(&o.judge, "judge", "", "let this `model` say whether other texts have other facts; it changes no verdict")
	f.StringSliceVar(&o.live, "live", nil, "let the agent use these `TOOLS` now if the record has no result: "+strings.Join(app.LiveTools(), ", "))
	f.Float64Var(&o.maxCost, "max-cost", 0, "spend at most this, in `USD` (default: twice the estimate plus 0.50)")
	f.IntVar(&o.parallel, "jobs", atOnce, "ask `N` runs at the same time")
	f.BoolVar(&o.yes, "yes", false, "on a terminal, do not ask before money is spent")
	cmd.MarkFlagsMutuallyExclusive("last", "since", "run")
	cmd.RunE = inHome(d, func(ctx context.Context, h app.Home, args []string) error {
		if err := checkMaxCost(cmd, o.maxCost); err != nil {
			return err
		}
		return runBacktest(ctx, d, h, o, args[0])
	})
	cmd.AddCommand(
		newList(d, agentNever(refused), "list", "List backtests: id, job, what changed, same, missed, extra, undecided or not asked, cost",
			"ID JOB CHANGE SAME MISSED EXTRA OPEN COST", d.backtests, backtestRow.cells),
		withJSON(d, command(agentNever(refused), "show ID [RUN]", "Print the verdicts of a backtest, or what one run decided then and now",
			inHome(d, func(_ context.Context, h app.Home, args []string) error { return runBacktestShow(d, h, args) })), jsonLines),
		newBacktestContinue(d),
	)
	return withJSON(d, cmd, "print each verdict as one JSON object per line")
}

func runBacktest(ctx context.Context, d *deps, h app.Home, o backtestOptions, name string) error {
	jobs, _, err := d.jobSet()
	if err != nil {
		return err
	}
	j, err := jobs.Find(name)
	if err != nil {
		return err
	}
	p := backtest.Plan{
		Job: j.ID, Name: j.Name(), Begun: d.Now(), Model: o.model, Thinking: o.thinking, Baseline: o.baseline, Judge: o.judge, Live: o.live,
		MaxCost: o.maxCost, Parallel: o.parallel,
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.prompt != "" {
		if p.Body, err = d.newBody(o.prompt); err != nil {
			return err
		}
	}
	if p.Runs, err = o.selected(d, h, j.ID); err != nil {
		return err
	}
	if len(p.Runs) == 0 {
		return &withStatus{fmt.Errorf("%s has no recorded run of that time that can be asked again: it must have reached a model and ended ok, unreported or expired, and its requests must be kept", j.Name()), statusData}
	}
	table, err := h.Models()
	if err != nil {
		return err
	}
	usd, known := p.Estimate(h.Runs, table)
	if p.MaxCost == 0 { // without a price, too: only a local service then answers
		p.MaxCost = 2*usd + reserve
	}
	if goOn, err := d.agreesToSpend(ctx, p, usd, known, o.yes); err != nil || !goOn {
		return err
	}
	if p.ID, err = runlog.NewID(d.Now(), d.Random); err != nil {
		return err
	}
	if err := h.Backtests().Begin(p); err != nil {
		return err
	}
	return d.backtest(ctx, h, p)
}

// reserve is what the limit that follows from an estimate has beyond twice the estimate, in USD, so that the answers of several runs at the
// same time may have their usual length.
const reserve = 0.50

// atOnce is how many runs are asked at the same time unless an option says otherwise.
const atOnce = 4

// checkMaxCost returns an error if --max-cost is given and is not an amount.
func checkMaxCost(cmd *cobra.Command, usd float64) error {
	if cmd.Flags().Changed("max-cost") && (math.IsNaN(usd) || math.IsInf(usd, 0) || usd <= 0) {
		return usage("--max-cost %v: want an amount in USD, more than 0", usd)
	}
	return nil
}

func (o backtestOptions) check() error {
	switch {
	case o.model == "" && o.prompt == "" && o.thinking == "" && !o.baseline:
		return hint(usage("no change is given"), "--model, --prompt, --thinking; or --baseline, which asks the same again")
	case o.engine != "native":
		return usage("--engine %s: only native can ask a recorded run, whichever engine it ran on", o.engine)
	case o.last < 1:
		return usage("--last %d: want 1 or more", o.last)
	case o.parallel < 1:
		return usage("--jobs %d: want 1 or more", o.parallel)
	}
	for i, name := range o.live {
		if o.live[i] = strings.TrimSpace(name); !slices.Contains(app.LiveTools(), o.live[i]) {
			return usage("--live %q: want one or more of %s", name, strings.Join(app.LiveTools(), ", "))
		}
	}
	for _, name := range []string{o.model, o.judge} {
		if err := model.CheckName(name); name != "" && err != nil {
			return usage("%v", err)
		}
	}
	if o.thinking != "" {
		if _, err := model.ParseThinking(o.thinking); err != nil {
			return usage("--thinking %v", err)
		}
	}
	return nil
}

// selected returns the ids of the runs that are asked.
func (o backtestOptions) selected(d *deps, h app.Home, job string) (ids []string, err error) {
	if len(o.runs) == 0 {
		most, from := o.last, time.Time{}
		if o.since != "" {
			if from, err = d.since(o.since); err != nil {
				return nil, err
			}
			most = 0
		}
		return backtest.Select(h.Runs, h.Requests, job, most, from)
	}
	for _, name := range o.runs {
		r, err := d.findRun(h, name)
		if err != nil {
			return nil, err
		}
		if r.Job != job {
			return nil, usage("run %s is one of %s", r.ID, r.Name)
		}
		if !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}

// newBody reads a body, or the body of a job's file.
func (d *deps) newBody(path string) (*string, error) {
	var text string
	var err error
	if path == "-" {
		text, err = readInput(d.In)
	} else {
		var data []byte
		data, err = os.ReadFile(path)
		text = string(data)
	}
	if err != nil {
		return nil, &withStatus{fmt.Errorf("--prompt: %w", err), statusData}
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, &withStatus{fmt.Errorf("--prompt %s: want UTF-8 text", path), statusData}
	}
	if page, err := yamldoc.ParsePage(path, []byte(text)); err == nil { // else it has no frontmatter
		text = page.Body
	}
	if text = strings.TrimSpace(text); text == "" {
		return nil, &withStatus{fmt.Errorf("--prompt %s: the body is empty", path), statusData}
	}
	return &text, nil
}

// agreesToSpend says what a backtest is likely to cost, and asks on a terminal.
func (d *deps) agreesToSpend(ctx context.Context, p backtest.Plan, usd float64, known, yes bool) (bool, error) {
	cost := "the price of the model is not known"
	if known {
		cost = fmt.Sprintf("about $%.4f, at most $%.4f", usd, p.MaxCost)
	}
	return d.agreesOnTerminal(ctx, fmt.Sprintf("backtest of %s: %s, %s.", p.Name, plaintext.Count(len(p.Runs), "run"), cost), "Start?", yes)
}

// agreesOnTerminal prints a text after what was printed before, and asks a question about it whose answer is yes or no, if a person is there
// who can answer it and has not said yes before.
func (d *deps) agreesOnTerminal(ctx context.Context, text, question string, yes bool) (bool, error) {
	if err := d.flush(); err != nil {
		return false, err
	}
	d.note("%s", printable(text))
	if yes || !isTerminal(d.In) || !isTerminal(d.Stderr) {
		return true, nil
	}
	return newAsker(d.In).agrees(ctx, d.Stderr, question, false)
}

// backtest carries out a plan, and prints what comes of it.
func (d *deps) backtest(ctx context.Context, h app.Home, p backtest.Plan) error {
	var written error
	list, err := h.Backtest(ctx, p, d.atShell(), func(v backtest.Verdict) {
		if d.json {
			written = errors.Join(written, d.emit(v), d.flush())
		}
	})
	if written != nil {
		return written
	}
	if errors.Is(err, lock.ErrBusy) {
		return err
	}
	if !d.json {
		err = errors.Join(d.verdicts(p, list), err)
	}
	if err != nil {
		d.warn("what was asked is kept: ollim backtest show " + p.ID + "; to go on: ollim backtest continue " + p.ID)
		if errors.Is(err, backtest.ErrMoney) {
			return &withStatus{err, statusRefused}
		}
		return err
	}
	return concludeBacktest(p, list)
}

// concludeBacktest returns the error that says what came of a backtest by its exit status.
func concludeBacktest(p backtest.Plan, list []backtest.Verdict) error {
	s := backtest.Summarize(list, !p.Changes())
	switch {
	case s.Missed > 0:
		return &reported{statusFailed}
	case s.Weak():
		return &withStatus{fmt.Errorf("only %d of %s decided: too few to judge", s.Decided(), plaintext.Count(s.Runs, "run")), statusData}
	}
	return nil
}

func newBacktestContinue(d *deps) *cobra.Command {
	var maxCost float64
	cmd := command(agentNever(refused), "continue ID", "Continue a backtest that did not finish", nil)
	cmd.Flags().Float64Var(&maxCost, "max-cost", 0, "spend at most this in all, in `USD` (default as the backtest began)")
	cmd.RunE = inHome(d, func(ctx context.Context, h app.Home, args []string) error {
		p, err := planOf(h, args[0])
		if err != nil {
			return err
		}
		if err := checkMaxCost(cmd, maxCost); err != nil {
			return err
		}
		if maxCost > 0 {
			p.MaxCost = maxCost
		}
		return d.backtest(ctx, h, p)
	})
	return withJSON(d, cmd, jsonLines)
}
