// Package report writes what happened in a time as one HTML page that needs nothing else: slots and runs by outcome, the cost, what
// the owner was told, and what each run did. It only reads. A part that cannot be read is left out, and the page says so.
//
// Nothing that a record says can run in the page: every text is escaped, the page has no script, and its policy forbids any. The page
// has at most about five megabytes however much happened. The runs with a problem come first to the space for what runs did, then
// the newest; of others the page has a line and names the command that prints the rest.
package report

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Page is what a report says. Times are in the configured zone.
type Page struct {
	Faults []string // what could not be read

	from, to time.Time
	secrets  plaintext.Secrets // whose values are replaced
	runs     []run             // newest first
	slots    []forecast.Answer // by time
	told     []told            // newest first
	money    money

	backtests []judged // newest first
}

// run is one run.
type run struct {
	id, job, name, kind string
	outcome             string
	note                string // the error or the question
	started             time.Time
	took                time.Duration // 0 while it runs
	cost                float64       // USD
	problem             bool
	reached             bool   // its events may say what the owner was told
	private             bool   // what was said in it is not kept
	story               string // what it did, as HTML; "": the page has only a line of it
}

// money is the spending and the limits as they are now.
type money struct {
	today, perDay, month, perMonth float64 // USD; a limit may be infinite
	runs, typed, runsPerDay        int     // today; typed: of runs, those that the owner started
	pings, capacity                int
}

// Collect reads what a page from an instant until now says. The error is that of a context that ended; a part that could not be read
// is one of the Faults.
func Collect(ctx context.Context, h app.Home, from time.Time) (*Page, error) {
	p := &Page{from: from.In(h.Config.Zone), to: h.Disk.Now().In(h.Config.Zone), secrets: h.Runs.Secrets()}
	for _, part := range []func(context.Context, app.Home) error{p.readRuns, p.readSlots, p.readStories, p.readTold, p.readMoney, p.readBacktests} {
		err := part(ctx, h)
		if ended := context.Cause(ctx); ended != nil {
			return nil, ended
		}
		if err != nil {
			p.fault("%v", err)
		}
	}
	return p, nil
}

func (p *Page) fault(format string, args ...any) {
	p.Faults = append(p.Faults, fmt.Sprintf(format, args...))
}

// readRuns reads the records.
func (p *Page) readRuns(ctx context.Context, h app.Home) error {
	for r, err := range h.Runs.List() {
		switch {
		case err != nil && r.ID == "":
			return err
		case err != nil:
			p.fault("run %s: %v", r.ID, err)
			continue
		case r.Started.Before(p.from) || ctx.Err() != nil:
			return nil
		}
		p.runs = append(p.runs, p.runOf(h.Runs.CutOff(r)))
	}
	return nil
}

func (p *Page) runOf(r runlog.Record) run {
	one := run{
		id: r.ID, job: r.Job, name: plaintext.Short(r.Name, nameText), kind: r.Kind,
		outcome: plaintext.Short(string(r.Outcome), nameText), note: cmp.Or(r.Error, r.Question),
		started: r.Started.In(p.to.Location()), cost: r.Cost, problem: r.Problem(),
		private: r.Private,
		reached: r.Pings > 0 || r.Turns == 0 && r.Outcome == runlog.OK, // a plain reminder has no turn
	}
	if one.outcome == "" {
		one.outcome = forecast.Running
	}
	if r.Done() {
		one.took = max(r.Finished.Sub(r.Started), time.Millisecond)
	}
	return one
}

// readSlots reads what became of the slots. A run that was skipped is a problem of its slot.
func (p *Page) readSlots(_ context.Context, h app.Home) (err error) {
	p.slots, err = h.Audit(p.from)
	byID := p.byID()
	for i, a := range p.slots {
		p.slots[i].Name = plaintext.Short(a.Name, nameText)
		if r := byID[a.Run]; r != nil && a.Problem() {
			r.problem = true
		}
	}
	return err
}

func (p *Page) readMoney(_ context.Context, h app.Home) error {
	pings, err := h.Budget.Status()
	if err != nil {
		return err
	}
	totals, err := h.Spend.Totals()
	limits := h.Spend.Limits
	p.money = money{
		totals.Today.Spent, limits.PerDay, totals.Month.Spent, limits.PerMonth, totals.Runs, totals.Typed, limits.RunsPerDay, int(pings.Available), pings.Capacity,
	}
	return err
}
