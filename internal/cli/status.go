package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app/overview"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/ui"
)

func newStatus(d *deps) *cobra.Command {
	var short, week bool
	cmd := command(agentAll(), "status", "Show what runs, failed, waits for you and fires next, the spending and the last week",
		func(cmd *cobra.Command, _ []string) error {
			switch {
			case short && (d.json || week):
				return usage("--short excludes --json and --week")
			case week:
				return runStatusWeek(d)
			}
			return runStatus(cmd.Context(), d, short)
		})
	cmd.Flags().BoolVar(&short, "short", false, "print one line")
	cmd.Flags().BoolVar(&week, "week", false, "print the summary of the seven days before today instead")
	return withJSON(d, cmd, "print one JSON object")
}

func runStatus(ctx context.Context, d *deps, short bool) error {
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	now := d.Now().In(h.Config.Zone)
	s, err := overview.Collect(ctx, h, short)   // the short form is called often
	if !s.Tick.Alive && !short && !d.inside() { // an agent cannot see the schedulers
		s.Tick.Why, s.Tick.Remedy = d.doctor().Stalled(ctx)
	}
	switch {
	case d.json:
		return cmp.Or(d.emit(s), err)
	case short:
		return d.answer(shortStatus(s, now), err)
	}
	for _, rows := range []func(*table, overview.Status, time.Time){tickRows, runRows, gateRows, waitingRows, nextRows, sumRows, weekRows} {
		t := d.table("") // each part has its own columns
		rows(t, s, now)
		t.end()
	}
	d.findings(s.Findings)
	if !d.inside() {
		if lookErr := overview.Look(h, now); lookErr != nil {
			d.warn(lookErr.Error())
		}
	}
	return err
}

// runStatusWeek prints the message that the setting summary sends each week.
func runStatusWeek(d *deps) error {
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	w, err := overview.LastWeek(h)
	if d.json {
		return cmp.Or(d.emit(w), err)
	}
	_, writeErr := fmt.Fprint(d.Out, ui.Fold(plaintext.Lines(w.Text()), ui.Columns(d.Stdout)))
	return cmp.Or(writeErr, err)
}

func runBare(ctx context.Context, d *deps) error {
	if dir, err := d.Dir(); err == nil && exists(d.ConfigFile(dir)) {
		return runStatus(ctx, d, false)
	}
	return d.answer("ollim demo       show it at work in a temporary directory, without an account\n"+
		"ollim init       set up the engine, messages to you, a routine and its schedule\n"+
		"ollim help       list the commands; ollim help tutorial is the first hour", nil)
}

func tickRows(t *table, s overview.Status, _ time.Time) {
	var seen any = moment{s.Tick.Seen, clock(s.Tick.Seen), false}
	if s.Tick.Seen.IsZero() {
		seen = "never seen"
	}
	switch {
	case s.Tick.Alive:
		t.row("tick", "running", seen)
	case s.Tick.Why != "":
		t.row("tick", state("not running"), seen, prose(s.Tick.Why), remedy(s.Tick.Remedy))
	default:
		t.row("tick", state("not running"), seen, "see: ollim doctor")
	}
	if p := s.Paused; p != nil {
		until := cmp.Or(p.Reason, "until: ollim resume")
		if !p.Until.IsZero() {
			until = "until " + clock(p.Until)
		}
		t.row(state("paused"), prose(until))
	}
	if s.Seal.On {
		t.row("seal", "on")
	} else {
		t.row("seal", state("off"), prose(s.Seal.Why))
	}
}

// when returns a time of day, with its date unless that is today.
func when(at, now time.Time) moment {
	at = at.In(now.Location())
	text := at.Format(time.TimeOnly)
	if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
		text = clock(at)
	}
	return moment{at, text, false}
}

func runRows(t *table, s overview.Status, now time.Time) {
	for _, r := range s.Running {
		t.row(state("running"), when(r.Started, now), brief(r.Label), r.ID)
	}
	for _, r := range s.Failed {
		var marks []string
		if r.New {
			marks = append(marks, "new")
		}
		if r.Recovered {
			marks = append(marks, "recovered")
		}
		text := prose(fmt.Sprintf("%s: %s", r.Outcome, plaintext.Short(r.Error, 120)))
		row := []any{state("failed"), when(r.Started, now), brief(r.Label), text, r.ID}
		if len(marks) > 0 {
			row = append(row, strings.Join(marks, ", "))
		}
		t.row(row...)
	}
	for _, m := range s.Models {
		t.row("model", when(m.Since, now), m.Model, prose(plaintext.Short(m.Text, 240)), strings.Join(m.Jobs, ", "))
	}
}

// gateRows are the gates that are off.
func gateRows(t *table, s overview.Status, now time.Time) {
	for _, g := range s.GatesOff {
		t.row(state("gate off"), when(g.At, now), brief(g.Name), prose(g.Text), "see: ollim run log "+g.Run)
	}
}

func waitingRows(t *table, s overview.Status, now time.Time) {
	for _, q := range s.Waiting {
		until := "until " + clock(q.Expires)
		if q.Answered {
			until = "answered"
		}
		t.row(state("waiting"), when(q.Asked, now), brief(q.Name), prose(plaintext.Short(plaintext.Line(q.Text), 120)), until, q.Run)
	}
	for _, name := range s.Approvals {
		t.row("approve", name, "see: ollim approve "+name)
	}
	for _, m := range s.Queued {
		kind := "queued"
		if m.CutOff {
			kind = "cut-off"
		}
		t.row(kind, when(m.Arrived, now), prose(plaintext.Short(plaintext.Line(m.Text), 60)))
	}
	for _, e := range s.Inbox {
		row := []any{"inbox", when(e.Since, now), brief(e.Name), strconv.Itoa(e.Count)}
		if e.Gone {
			row = append(row, "no valid file has this id")
		}
		t.row(row...)
	}
	if s.Updates > 0 {
		t.row("updates", strconv.Itoa(s.Updates))
	}
	if s.Held.Count > 0 {
		t.row("messages", s.Held.String())
	}
	if s.Undelivered > 0 {
		t.row("undelivered", strconv.Itoa(s.Undelivered))
	}
	if s.Invalid > 0 {
		t.row("invalid", plaintext.Count(s.Invalid, "job file"), "see: ollim check")
	}
}

func nextRows(t *table, s overview.Status, now time.Time) {
	for _, m := range s.Missed {
		row := []any{state("missed"), when(m.First, now), brief(m.Name), plaintext.Count(m.Count, "slot")}
		if m.Count > 1 {
			row = append(row, "the last "+clock(m.Last))
		}
		t.row(row...)
	}
	for _, f := range s.Overdue {
		t.row(state("overdue"), when(f.At, now), brief(f.Label))
	}
	for _, f := range s.Next {
		row := []any{"next", due(f.At), brief(f.Label)}
		if f.Host != "" {
			row = append(row, "on "+f.Host)
		}
		t.row(row...)
	}
	if s.Paused != nil && len(s.Next) == 0 {
		t.row("next", "nothing", "see: ollim resume")
	}
}

func sumRows(t *table, s overview.Status, _ time.Time) {
	of := func(spent float64, limit *float64) string {
		if limit == nil {
			return fmt.Sprintf("$%.2f", spent)
		}
		return fmt.Sprintf("$%.2f of $%.2f", spent, *limit)
	}
	t.row("pings", fmt.Sprintf("%d of %d left", s.Pings.Left, s.Pings.Capacity))
	t.row("spent", of(s.Spent.Today, s.Spent.PerDay)+" today", of(s.Spent.Month, s.Spent.PerMonth)+" this month")
	t.row("runs", fmt.Sprintf("%d automatic today", s.Runs.Automatic), fmt.Sprintf("%d started by you", s.Runs.Typed))
}

// weekRows lists the runs of each routine in the last week and the trend of its cost, then what follows from the trends.
func weekRows(t *table, s overview.Status, _ time.Time) {
	for _, w := range s.Week {
		row := []any{"week", brief(w.Label), fmt.Sprintf("%d of %d ok", w.Runs-w.Failed, w.Runs), fmt.Sprintf("$%.2f", w.Cost)}
		for i, cell := range trendCells(w.Trend) {
			if cell != "" {
				cell = fmt.Sprint(cell, []string{" of cost", "", " tokens"}[i])
			}
			row = append(row, cell)
		}
		for row[len(row)-1] == "" { // what is not known
			row = row[:len(row)-1]
		}
		t.row(row...)
	}
}

// trendCells returns a job's share of the bill, its growth and the size of its session; "" for what is not known.
func trendCells(t overview.Trend) []any {
	cells := []any{"", "", ""}
	if t.Share > 0 {
		cells[0] = fmt.Sprintf("%.0f %%", 100*t.Share)
	}
	if growth := t.PerDay(); growth != "" {
		cells[1] = growth + "/day"
	}
	if t.Context > 0 {
		cells[2] = plaintext.Thousands(t.Context)
	}
	return cells
}

// findings writes what follows from the trends, in sentences.
func (d *deps) findings(list []overview.Finding) {
	for _, f := range list {
		text := "note\t" + printable(f.String()) + "\n"
		if isTerminal(d.Stdout) {
			text = ui.Fold("note: "+printable(f.String()), ui.Columns(d.Stdout))
		}
		_, _ = fmt.Fprint(d.Out, text)
	}
}

func shortStatus(s overview.Status, now time.Time) string {
	var words []string
	missed := 0
	for _, m := range s.Missed {
		missed += m.Count
	}
	if !s.Tick.Alive {
		words = append(words, "no tick")
	}
	if s.Paused != nil {
		words = append(words, "paused")
	}
	for _, c := range []struct {
		n    int
		what string
	}{
		{len(s.Running), "running"}, {len(s.Failed), "failed"}, {len(s.Models), "model faults"}, {missed, "missed"}, {len(s.Overdue), "overdue"},
		{len(s.Waiting), "waiting"}, {len(s.Approvals), "to approve"}, {s.Updates, "updates"}, {s.Undelivered, "undelivered"},
		{s.Invalid, "invalid"},
	} {
		if c.n == 1 {
			c.what = strings.TrimSuffix(c.what, "s")
		}
		if c.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if len(s.Next) > 0 {
		layout := "Mon 15:04"
		if at := s.Next[0].At; at.Sub(now) < 12*time.Hour {
			layout = "15:04"
		} else if at.Sub(now) > 6*24*time.Hour {
			layout = time.DateOnly
		}
		words = append(words, "next "+s.Next[0].At.Format(layout))
	}
	return cmp.Or(strings.Join(words, ", "), "ok")
}
