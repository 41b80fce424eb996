package overview

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/ui"
)

// noon is a Monday in the middle of a month.
var noon = time.Date(2026, 3, 16, 12, 0, 0, 0, time.UTC)

// billOf is the bill of runs at 09:00 of the days before noon's: cost(job, 1) is of the day before.
func billOf(jobs []runlog.Record, days int, cost func(job string, daysAgo int) float64) *Bill {
	var runs []runlog.Record
	for ago := 0; ago <= days; ago++ {
		for _, r := range jobs {
			r.Kind, r.Started, r.Cost = "routine", noon.AddDate(0, 0, -ago).Add(-3*time.Hour), cost(r.Job, ago)
			runs = append(runs, r)
		}
	}
	return summed(runs...)
}

func summed(runs ...runlog.Record) *Bill {
	b := NewBill(noon, time.UTC)
	for _, t := range runlog.Sum(runs, time.UTC) {
		b.add(t)
	}
	return b
}

func TestGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		days int
		cost func(ago int) float64
		want float64 // NaN: not known
	}{
		"9 % a day":           {28, func(ago int) float64 { return 2 * math.Pow(1.09, -float64(ago)) }, 0.09},
		"constant":            {28, func(int) float64 { return 0.10 }, 0},
		"shrinks":             {14, func(ago int) float64 { return math.Pow(1.05, float64(ago)) }, -1 + 1/1.05},
		"two days of outage":  {28, func(ago int) float64 { return map[bool]float64{true: 0.001, false: 1}[ago == 3 || ago == 4] }, 0},
		"one day that is 50x": {28, func(ago int) float64 { return map[bool]float64{true: 5, false: 0.1}[ago == 1] }, 0},
		"Mondays":             {28, func(ago int) float64 { return map[bool]float64{true: 1}[ago%7 == 0] }, math.NaN()},
		"four days":           {4, func(int) float64 { return 1 }, math.NaN()},
		"today is not over":   {28, func(ago int) float64 { return map[bool]float64{true: 0.001, false: 1}[ago == 0] }, 0},
		"free":                {28, func(int) float64 { return 0 }, math.NaN()},
	} {
		b := billOf([]runlog.Record{{Subject: runlog.Subject{Job: "a", Name: "a"}}}, c.days, func(_ string, ago int) float64 { return c.cost(ago) })
		got := math.NaN()
		if tr := b.Trend("a", noon.AddDate(0, 0, -7)); tr.Growth != nil {
			got = *tr.Growth
		}
		if math.Abs(got-c.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestShareAndContext(t *testing.T) {
	at := func(days int) time.Time { return noon.AddDate(0, 0, -days) }
	b := summed(
		runlog.Record{Subject: runlog.Subject{Job: "a", Kind: "routine"}, Started: at(1), Cost: 0, Outcome: runlog.Gated},
		runlog.Record{Subject: runlog.Subject{Job: "a", Kind: "routine"}, Started: at(2), Cost: 0.3, Context: 1200, Window: 200_000},
		runlog.Record{Subject: runlog.Subject{Job: "b", Kind: "routine"}, Started: at(3), Cost: 0.1, Context: 7},
		runlog.Record{Subject: runlog.Subject{Job: "b", Kind: "routine"}, Started: at(20), Cost: 100, Context: 9},
	)
	if got := b.Trend("a", at(7)); math.Abs(got.Share-0.75) > 1e-9 || got.Context != 1200 || got.Window != 200_000 {
		t.Errorf("a: %+v", got)
	}
	if got := b.Trend("b", at(28)); got.Share < 0.99 || got.Context != 7 {
		t.Errorf("b: %+v", got)
	}
	if got := b.Trend("unknown", at(7)); got != (Trend{}) {
		t.Errorf("unknown: %+v", got)
	}
}

func TestFindings(t *testing.T) {
	const monitor, digest = "monitor", "digest"
	jobs := []runlog.Record{{Subject: runlog.Subject{Job: monitor, Name: monitor}, Persistent: true}, {Subject: runlog.Subject{Job: digest, Name: digest}}}
	grows := func(rate float64) func(string, int) float64 {
		return func(job string, ago int) float64 {
			if job == digest {
				return 0.05
			}
			return 2 * math.Pow(rate, -float64(ago))
		}
	}
	none := Month{Limit: math.Inf(1)}
	for name, c := range map[string]struct {
		days  int
		cost  func(string, int) float64
		month Month
		want  []string // subjects
		says  string
	}{
		"nothing":           {28, grows(1), none, nil, ""},
		"doubles in a week": {28, grows(1.12), none, []string{monitor}, "a day of monitor costs $1.27, a week before it was $0.57; monitor is 97 % of the bill, +12 % a day: `ollim session compact routine:monitor \"keep what matters\"`"},
		"grows slower":      {28, grows(1.09), none, nil, ""},
		"is cheap":          {28, func(string, int) float64 { return 0.001 }, none, nil, ""},
		"cheap and doubled": {28, func(_ string, ago int) float64 { return 0.01 * math.Pow(1.12, -float64(ago)) }, none, nil, ""},
		"doubled at once": {28, func(job string, ago int) float64 {
			return map[bool]float64{true: 0.40, false: 0.10}[job == digest && ago < 6]
		}, none, []string{digest}, "digest is 76 % of the bill: `ollim routine edit digest`"},
		"a small part of the bill": {28, func(job string, ago int) float64 {
			return map[bool]float64{true: 0.15 * math.Pow(1.12, -float64(ago)), false: 2}[job == digest]
		}, none, nil, ""},
		"one dear day":                {28, func(_ string, ago int) float64 { return map[bool]float64{true: 4, false: 0.10}[ago == 2] }, none, nil, ""},
		"compacted every twelve days": {28, func(_ string, ago int) float64 { return 0.05 + 0.05*float64((28-ago)%12) }, none, nil, ""},
		"a new job":                   {14, grows(1.12), none, []string{monitor}, ""},
		"five days old":               {5, grows(1.5), none, nil, ""},
		"month ends first":            {28, grows(1), Month{50, 100}, nil, ""},
		"month's limit":               {28, grows(1), Month{80, 100}, []string{MonthSubject}, "the month's limit of $100.00 will be reached about Wed 25 Mar, and nothing automatic runs from then to Wed 1 Apr: $80.00 are spent, $2.05 a day in the last week; monitor is 98 % of the bill: `ollim session compact routine:monitor \"keep what matters\"` or `ollim config set spend.per-month 120`"},
		"it is reached":               {28, grows(1), Month{100, 100}, nil, ""},
		"no limit":                    {28, grows(1), Month{1000, math.Inf(1)}, nil, ""},
		"two days old":                {1, grows(1), Month{80, 100}, nil, ""},
		"both":                        {28, grows(1.12), Month{90, 100}, []string{MonthSubject, monitor}, ""},
	} {
		list := billOf(jobs, c.days, c.cost).Findings(c.month)
		var subjects, texts []string
		for _, f := range list {
			subjects, texts = append(subjects, f.Subject), append(texts, f.String())
		}
		if !slices.Equal(subjects, c.want) || !strings.Contains(strings.Join(texts, "\n"), c.says) {
			t.Errorf("%s: %q %s", name, subjects, strings.Join(texts, "\n"))
		}
	}
}

// Each kind of job has a command that helps.
func TestRemedies(t *testing.T) {
	for want, r := range map[string]runlog.Record{
		`ollim session compact routine:a "keep what matters"`: {Subject: runlog.Subject{Kind: "routine", Job: "1", Name: "a"}, Persistent: true},
		"ollim routine edit a":                                {Subject: runlog.Subject{Kind: "routine", Job: "1", Name: "a"}},
		"ollim routine edit 2":                                {Subject: runlog.Subject{Kind: "routine", Job: "2", Name: "a; rm b"}},
		"ollim webhook edit a":                                {Subject: runlog.Subject{Kind: "webhook", Job: "a", Name: "a"}},
		`ollim session compact main "keep what matters"`:      {Subject: runlog.Subject{Kind: "chat", Job: "main"}},
		"ollim cost --by day --since 14d":                     {Subject: runlog.Subject{Kind: "ask", Job: "ask"}},
	} {
		r.Started, r.Cost = noon, 1
		b := summed(r)
		if got := b.jobs[r.Job].remedy(); got != want {
			t.Errorf("%s: %s, want %s", r.Kind, got, want)
		}
	}
}

// A summary has lines for what there is, and at most 80 columns when it is folded.
func TestTextOfAWeek(t *testing.T) {
	w := Week{From: noon.AddDate(0, 0, -7), To: noon, Outcomes: map[runlog.Outcome]int{}}
	if got, want := w.Text(), "The week from Mon 9 Mar 12:00 to Mon 16 Mar 12:00\nran: 0 fires, 0 turns of conversations\ncost: $0.00, $0.00 this month\n"; got != want {
		t.Errorf("nothing: %q", got)
	}
	w.Fires, w.Turns, w.Outcomes = 30, 1, map[runlog.Outcome]int{runlog.OK: 20, runlog.Gated: 4, runlog.Failed: 6}
	at := func(hours time.Duration) runlog.Span {
		return runlog.Span{Count: 1, First: noon.Add(hours * time.Hour), Last: noon.Add(hours * time.Hour)}
	}
	for i := range 7 {
		w.Failed = count(w.Failed, fmt.Sprint("j", i), fmt.Sprint("a job with a long name, number ", i), at(-1))
	}
	w.Missed = count(count(nil, "m", "m", at(-30)), "m", "m", at(-26))
	limit := 100.0
	w.Cost, w.Before, w.Month, w.PerMonth = 12, 8, 40, &limit
	w.Jobs = []share{{Job: "m", Name: "m", Cost: 9, Trend: Trend{Share: 0.75}}}
	w.Grew = []growing{{Job: "m", Name: "m", PerDay: 0.09, Before: 61_000, After: 130_400}}
	w.Findings = []Finding{{Text: "text", Commands: []string{"x", "y"}}}
	for _, want := range []string{
		"\nran: 30 fires (20 ok, 6 failed, 4 gated), 1 turn of conversations\n", ", 2 more jobs\n", "\nmissed: m 2 (Sun 06:00 to Sun 10:00)\n",
		"\ncost: $12.00 (+50 % on the week before), $40.00 of $100.00 this month\n- m $9.00 (75 %)\ngrew:\n- m +9 % a day, session 61k to 130k tokens\n", "\nnote: text: `x` or `y`\n",
	} {
		if !strings.Contains(w.Text(), want) {
			t.Errorf("%s\nwant %s", w.Text(), want)
		}
	}
	for line := range strings.Lines(ui.Fold(w.Text(), 80)) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}
