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
)

func newStatus(d *deps) *cobra.Command {
	var short bool
	cmd := command(agentAll(), "status", "Show what runs, failed, waits for you and fires next, the spending and the last week",
		func(cmd *cobra.Command, _ []string) error {
			if short && d.json {
				return usage("--short and --json exclude each other")
			}
			return runStatus(cmd.Context(), d, short)
		})
	cmd.Flags().BoolVar(&short, "short", false, "print one line")
	return withJSON(d, cmd, "print one JSON object")
}

// weekDays is how many days the sums by routine cover.
const weekDays = 7

func runStatus(ctx context.Context, d *deps, short bool) error {
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	days, now := weekDays, d.Now()
	if short {
		days = 1 // it is called often
	}
	s, err := overview.Collect(ctx, h, days)
	switch {
	case d.json:
		return cmp.Or(d.emit(s), err)
	case short:
		return d.answer(shortStatus(s, now), err)
	}
	t := d.table("")
	tickRows(t, s)
	runRows(t, s, now)
	waitingRows(t, s)
	sumRows(t, s)
	t.end()
	if !d.inside() {
		if lookErr := overview.Look(h, now); lookErr != nil {
			d.warn(lookErr.Error())
		}
	}
	return err
}

func runBare(ctx context.Context, d *deps) error {
	if dir, err := d.Dir(); err == nil && exists(d.ConfigFile(dir)) {
		return runStatus(ctx, d, false)
	}
	return d.answer("ollim demo       show it at work in a temporary directory, without an account\n"+
		"ollim init       create the data directory and a sample routine\n"+
		"ollim help       list the commands; ollim help 7 shows the manual", nil)
}

func tickRows(t *table, s overview.Status) {
	seen := moment{s.Tick.Seen, clock(s.Tick.Seen), false}
	switch {
	case s.Tick.Alive:
		t.row("tick", "running", seen)
	case s.Tick.Seen.IsZero():
		t.row("tick", state("not running"), "never seen", "see: ollim doctor")
	default:
		t.row("tick", state("not running"), seen, "see: ollim doctor")
	}
	if p := s.Paused; p != nil {
		until := cmp.Or(p.Reason, "until: ollim resume")
		if !p.Until.IsZero() {
			until = "until " + clock(p.Until)
		}
		t.row(state("paused"), until)
	}
	if s.Seal.On {
		t.row("seal", "on")
	} else {
		t.row("seal", state("off"), s.Seal.Why)
	}
}

func timeOfDay(at time.Time) moment { return moment{at, at.Format(time.TimeOnly), false} }

func runRows(t *table, s overview.Status, now time.Time) {
	for _, r := range s.Running {
		t.row(state("running"), timeOfDay(r.Started), r.Label, r.ID)
	}
	for _, r := range s.Failed {
		at, marks := timeOfDay(r.Started), []string{}
		if now.Sub(r.Started) > 24*time.Hour {
			at = moment{r.Started, clock(r.Started), false}
		}
		if r.New {
			marks = append(marks, "new")
		}
		if r.Recovered {
			marks = append(marks, "recovered")
		}
		row := []any{state("failed"), at, r.Label, fmt.Sprintf("%s: %s", r.Outcome, plaintext.Short(r.Error, 120)), r.ID}
		if len(marks) > 0 {
			row = append(row, strings.Join(marks, ", "))
		}
		t.row(row...)
	}
}

func waitingRows(t *table, s overview.Status) {
	for _, q := range s.Waiting {
		until := "until " + clock(q.Expires)
		if q.Answered {
			until = "answered"
		}
		t.row(state("waiting"), timeOfDay(q.Asked), q.Name, plaintext.Short(plaintext.Line(q.Text), 120), until, q.Run)
	}
	for _, name := range s.Approvals {
		t.row("approve", name, "see: ollim approve "+name)
	}
	for _, m := range s.Queued {
		kind := "queued"
		if m.CutOff {
			kind = "cut-off"
		}
		t.row(kind, timeOfDay(m.Arrived), plaintext.Short(plaintext.Line(m.Text), 60))
	}
	for _, e := range s.Inbox {
		row := []any{"inbox", timeOfDay(e.Since), e.Name, strconv.Itoa(e.Count)}
		if e.Gone {
			row = append(row, "no valid file has this id")
		}
		t.row(row...)
	}
}

func sumRows(t *table, s overview.Status) {
	if s.Updates > 0 {
		t.row("updates", strconv.Itoa(s.Updates))
	}
	if s.Undelivered > 0 {
		t.row("undelivered", strconv.Itoa(s.Undelivered))
	}
	if s.Invalid > 0 {
		t.row("invalid", strconv.Itoa(s.Invalid)+" job files", "see: ollim check")
	}
	for _, f := range s.Next {
		t.row("next", due(f.At), f.Label)
	}
	of := func(spent float64, limit *float64) string {
		if limit == nil {
			return fmt.Sprintf("$%.2f", spent)
		}
		return fmt.Sprintf("$%.2f of $%.2f", spent, *limit)
	}
	t.row("pings", fmt.Sprintf("%d of %d left", s.Pings.Left, s.Pings.Capacity))
	t.row("spent", of(s.Spent.Today, s.Spent.PerDay)+" today", of(s.Spent.Month, s.Spent.PerMonth)+" this month", plaintext.Count(s.Spent.RunsToday, "automatic run")+" today")
	for _, w := range s.Week {
		t.row("week", w.Label, plaintext.Count(w.Runs, "run"), fmt.Sprintf("%d ok", w.Runs-w.Failed), fmt.Sprintf("$%.2f", w.Cost))
	}
}

func shortStatus(s overview.Status, now time.Time) string {
	var words []string
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
		{len(s.Running), "running"}, {len(s.Failed), "failed"}, {len(s.Waiting), "waiting"}, {len(s.Approvals), "to approve"},
		{s.Updates, "updates"}, {s.Undelivered, "undelivered"}, {s.Invalid, "invalid"},
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
