package overview

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Week is what ran, was missed, was refused, cost and grew in the seven days before today. Times are in the configured zone.
type Week struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`

	Fires    int                    `json:"fires"` // that have ended
	Outcomes map[runlog.Outcome]int `json:"outcomes"`
	Turns    int                    `json:"turns"`   // of conversations, and questions at a shell
	Failed   []tally                `json:"failed"`  // fires, by job
	Refused  []tally                `json:"refused"` // fires, by job
	Missed   []tally                `json:"missed"`  // slots, by job

	Cost     float64   `json:"cost"`   // USD
	Before   float64   `json:"before"` // in the seven days before
	Month    float64   `json:"month"`
	PerMonth *float64  `json:"per_month"` // nil: no limit
	Jobs     []share   `json:"jobs"`      // what they cost, the costliest first
	Grew     []growing `json:"grew"`
	Findings []Finding `json:"findings"`
}

// tally is a number of fires or slots of one job.
type tally struct {
	Job  string `json:"job"`
	Name string `json:"name"`
	runlog.Span
}

// share is what one job cost.
type share struct {
	Job  string  `json:"job"`
	Name string  `json:"name"`
	Cost float64 `json:"cost"` // USD
	Trend
}

// growing is a job that costs more each day, or whose session has become larger.
type growing struct {
	Job    string  `json:"job"`
	Name   string  `json:"name"`
	PerDay float64 `json:"growth_per_day,omitempty"`
	Before int     `json:"context_before,omitempty"` // tokens at the beginning of the week
	After  int     `json:"context,omitempty"`        // at its end
}

// larger is the factor by which a session must have grown to be mentioned: a tenth.
const larger = 1.1

// LastWeek returns the last seven days before today. The error is of the parts that could not be read.
func LastWeek(h app.Home) (Week, error) {
	bill := NewBill(h.Disk.Now(), h.Config.Zone)
	w := Week{
		From: bill.midnight(-weekDays), To: bill.midnight(0), Outcomes: map[runlog.Outcome]int{},
		Failed: []tally{}, Refused: []tally{}, Jobs: []share{}, Grew: []growing{}, Findings: []Finding{},
	}
	all, err := bill.Read(h.Runs)
	w.runs(bill, all.Tallies)
	var auditErr error
	w.Missed, auditErr = missed(h, w.From, w.To)
	month, monthErr := monthOf(h)
	w.Month, w.PerMonth = month.Spent, finite(month.Limit)
	w.Findings = append(w.Findings, bill.Findings(month)...)
	return w, errors.Join(err, auditErr, monthErr)
}

// runs adds what ran.
func (w *Week) runs(bill *Bill, all []*runlog.Tally) {
	costs, grown := map[string]*share{}, map[string]*growing{}
	for _, t := range all {
		switch {
		case t.Date >= bill.date(0):
		case t.Date >= bill.date(-weekDays):
			w.add(t, costs, grown)
		case t.Date >= bill.date(-2*weekDays):
			w.Before += t.Cost
		}
	}
	for id, s := range costs {
		s.Name, s.Trend = bill.jobs[id].name, bill.Trend(id, w.From)
		if s.Share = 0; w.Cost > 0 {
			s.Share = s.Cost / w.Cost
		}
		w.Jobs = append(w.Jobs, *s)
	}
	slices.SortStableFunc(w.Jobs, func(a, b share) int { return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.Job, b.Job)) })
	for _, id := range slices.Sorted(maps.Keys(grown)) {
		g := *grown[id]
		g.Name = bill.jobs[id].name
		if rate, ok := bill.growth(bill.jobs[id]); ok && math.Round(rate*100) > 0 {
			g.PerDay = rate
		}
		if float64(g.After) < larger*float64(g.Before) {
			g.Before, g.After = 0, 0
		}
		if g.PerDay > 0 || g.After > 0 {
			w.Grew = append(w.Grew, g)
		}
	}
	slices.Reverse(w.Failed)
	slices.Reverse(w.Refused)
}

// add adds runs of the week; the tallies come in the order of their newest runs, the latest first.
func (w *Week) add(t *runlog.Tally, costs map[string]*share, grown map[string]*growing) {
	if w.Cost += t.Cost; t.Cost > 0 {
		if costs[t.Job] == nil {
			costs[t.Job] = &share{Job: t.Job}
		}
		costs[t.Job].Cost += t.Cost
	}
	g := grown[t.Job]
	if g == nil {
		g = &growing{Job: t.Job}
		grown[t.Job] = g
	}
	if !t.Sized.IsZero() {
		g.Before, g.After = t.Before, cmp.Or(g.After, t.Context)
	}
	for outcome, n := range t.Outcomes {
		switch {
		case !t.OfJob():
			w.Turns += n
		case outcome != "":
			w.Fires += n
			w.Outcomes[outcome] += n
		}
	}
	if t.OfJob() {
		w.Refused = count(w.Refused, t.Job, t.Newest.Name, t.Refused)
		w.Failed = count(w.Failed, t.Job, t.Newest.Name, t.Failed)
	}
}

// count counts more of a job.
func count(list []tally, id, name string, more runlog.Span) []tally {
	if more.Count == 0 {
		return list
	}
	i := slices.IndexFunc(list, func(t tally) bool { return t.Job == id })
	if i < 0 {
		return append(list, tally{id, name, more})
	}
	list[i].Span = list[i].Extend(more)
	return list
}

// named is how many jobs a line of the summary names; it counts the others.
const named = 5

// Text returns the summary as a message, a fact on each line.
func (w Week) Text() string {
	lines := []string{fmt.Sprintf("The week from %s to %s", w.From.Format(longTime), w.To.Format(longTime))}
	ran := plaintext.Count(w.Fires, "fire")
	if w.Fires > 0 {
		ran += " (" + plaintext.Tally(w.Outcomes) + ")"
	}
	lines = append(lines, "ran: "+ran+", "+plaintext.Count(w.Turns, "turn")+" of conversations")
	for _, part := range []struct {
		label string
		list  []tally
	}{{"failed: ", w.Failed}, {"refused: ", w.Refused}, {"missed: ", w.Missed}} {
		if len(part.list) > 0 {
			lines = append(lines, part.label+tallies(part.list))
		}
	}
	lines = append(lines, "cost: "+w.money())
	lines = append(lines, listed(w.Jobs, func(s share) string { return fmt.Sprintf("%s $%.2f (%.0f %%)", s.Name, s.Cost, 100*s.Share) })...)
	if len(w.Grew) > 0 {
		lines = append(lines, "grew:")
		lines = append(lines, listed(w.Grew, growing.text)...)
	}
	for _, f := range w.Findings {
		lines = append(lines, "note: "+f.String())
	}
	return strings.Join(lines, "\n") + "\n"
}

const longTime = "Mon 2 Jan 15:04"

// listed returns a line for each of the first items, and one that counts the others.
func listed[T any](list []T, text func(T) string) (lines []string) {
	for _, item := range list[:min(named, len(list))] {
		lines = append(lines, "- "+text(item))
	}
	if more := len(list) - named; more > 0 {
		lines = append(lines, "- "+plaintext.Count(more, "more job"))
	}
	return lines
}

func tallies(list []tally) string {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b tally) int { return cmp.Or(b.Count-a.Count, strings.Compare(a.Job, b.Job)) })
	var words []string
	for _, t := range list[:min(named, len(list))] {
		text := fmt.Sprintf("%s %d (%s", t.Name, t.Count, t.First.Format("Mon 15:04"))
		if t.Count > 1 {
			text += " to " + t.Last.Format("Mon 15:04")
		}
		words = append(words, text+")")
	}
	if more := len(list) - named; more > 0 {
		words = append(words, plaintext.Count(more, "more job"))
	}
	return strings.Join(words, ", ")
}

func (w Week) money() string {
	text := fmt.Sprintf("$%.2f", w.Cost)
	if change := math.Round(100 * (w.Cost/w.Before - 1)); w.Before >= 0.01 && change != 0 {
		text += fmt.Sprintf(" (%+.0f %% on the week before)", change)
	}
	if text += fmt.Sprintf(", $%.2f", w.Month); w.PerMonth != nil {
		text += fmt.Sprintf(" of $%.2f", *w.PerMonth)
	}
	return text + " this month"
}

func (g growing) text() string {
	var parts []string
	if g.PerDay > 0 {
		parts = append(parts, fmt.Sprintf("+%.0f %% a day", 100*g.PerDay))
	}
	if g.After > 0 {
		parts = append(parts, fmt.Sprintf("session %s to %s tokens", plaintext.Thousands(g.Before), plaintext.Thousands(g.After)))
	}
	return g.Name + " " + strings.Join(parts, ", ")
}
