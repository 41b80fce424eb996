package overview

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/session"
)

// Finding is something about the bill that the owner should know.
type Finding struct {
	Subject  string   `json:"subject"`  // the job's id, or MonthSubject; there is one finding for each
	Name     string   `json:"name"`     // what it is about, such as "The cost of monitor"
	Jobs     []string `json:"jobs"`     // ids
	Text     string   `json:"text"`     // a sentence without a full stop
	Commands []string `json:"commands"` // that help, each by itself, when typed as they are

	names []string // of Jobs
}

// MonthSubject is the subject of the month's limit. A job's id cannot have a space.
const MonthSubject = "the month"

// Remedy returns the commands as the end of a sentence.
func (f Finding) Remedy() string { return "`" + strings.Join(f.Commands, "` or `") + "`" }

func (f Finding) String() string { return f.Text + ": " + f.Remedy() }

// Month is the spending of the month, as the limits count it.
type Month struct {
	Spent float64 // USD
	Limit float64 // USD; +Inf: none
}

func monthOf(h app.Home) (Month, error) {
	totals, err := h.Spend.Totals()
	return Month{totals.Month.Spent, h.Spend.Limits.PerMonth}, err
}

// A job that costs twice as much is no news if a day of it costs less than minor, in USD, or it has less than minorShare of the bill.
const (
	minor      = 0.05
	minorShare = 0.1
)

// leastRate is how many days must have runs before anything is concluded from them.
const leastRate = 3

// Findings returns what is wrong with the bill: the month's limit will be reached before its end, or a job costs twice as much as a
// week ago. It depends on nothing else than the bill and the spending.
func (b *Bill) Findings(m Month) (list []Finding) {
	if f, ok := b.monthEnds(m); ok {
		list = append(list, f)
	}
	for _, a := range b.costliest(b.midnight(-7)) {
		if before, after, ok := b.doubled(a); ok {
			text := fmt.Sprintf("a day of %s costs $%.2f, a week before it was $%.2f; %s", a.name, after, before, b.portion(a))
			list = append(list, Finding{a.id, "The cost of " + a.name, []string{a.id}, text, []string{a.remedy()}, []string{a.name}})
		}
	}
	return list
}

// doubled compares the median day of the last week with that of the week before. A job whose session grows and is compacted costs more and
// less in turn, so a cost that it had before is no news.
func (b *Bill) doubled(a *account) (before, after float64, ok bool) {
	last, earlier := b.spent(a, -7, 0), b.spent(a, -14, -7)
	if len(last) < leastRate || len(earlier) < leastRate {
		return 0, 0, false
	}
	before, after = median(earlier), median(last)
	if after < 2*before || after < minor || b.Trend(a.id, b.midnight(-7)).Share < minorShare {
		return 0, 0, false
	}
	known := b.spent(a, -TrendDays, -14)
	return before, after, len(known) == 0 || after > slices.Max(known)
}

// monthEnds returns the finding of when the limit will be reached if the days cost what those of the last week did.
func (b *Bill) monthEnds(m Month) (Finding, bool) {
	days, rate := b.rate()
	if days < leastRate || rate <= 0 || m.Spent >= m.Limit || math.IsInf(m.Limit, 1) {
		return Finding{}, false
	}
	left := math.Floor((m.Limit - m.Spent) / rate)
	year, month, _ := b.now.Date()
	next := time.Date(year, month+1, 1, 0, 0, 0, 0, b.now.Location())
	if left > 31 || !b.midnight(int(left)).Before(next) {
		return Finding{}, false
	}
	f := Finding{Subject: MonthSubject, Name: "The month's spending"}
	f.Text = fmt.Sprintf("the month's limit of $%.2f will be reached about %s, and nothing automatic runs from then to %s: $%.2f are spent, $%.2f a day in the last week",
		m.Limit, day(b.midnight(int(left))), day(next), m.Spent, rate)
	if most := b.costliest(b.midnight(-7)); len(most) > 0 {
		f.Jobs, f.names, f.Commands = []string{most[0].id}, []string{most[0].name}, []string{most[0].remedy()}
		f.Text += "; " + b.portion(most[0])
	}
	need := m.Spent + rate*math.Ceil(next.Sub(b.now).Hours()/24)
	f.Commands = append(f.Commands, fmt.Sprintf("ollim config set spend.per-month %.0f", math.Ceil(need/10)*10))
	return f, true
}

// rate returns what the last seven days before today cost on average, and how many there are: fewer in a new installation.
func (b *Bill) rate() (days int, perDay float64) {
	for ; days < 7 && b.first.Before(b.midnight(-days)); days++ {
		for _, a := range b.jobs {
			perDay += a.days[b.date(-days-1)]
		}
	}
	return days, perDay / float64(max(days, 1))
}

func day(at time.Time) string { return at.Format("Mon 2 Jan") }

// portion returns the job's share of the last week's bill and its growth, such as "monitor is 88 % of the bill, +9 % a day".
func (b *Bill) portion(a *account) string {
	t := b.Trend(a.id, b.midnight(-7))
	text := fmt.Sprintf("%s is %.0f %% of the bill", a.name, 100*t.Share)
	if growth := t.PerDay(); growth != "" {
		text += ", " + growth + " a day"
	}
	return text
}

// PerDay returns the growth as a person reads it, such as "+9 %"; "" if it is not known, or less than one percent.
func (t Trend) PerDay() string {
	if t.Growth == nil || math.Round(*t.Growth*100) == 0 {
		return ""
	}
	return fmt.Sprintf("%+.0f %%", *t.Growth*100)
}

// keep is the instruction in a suggested compaction, for an owner who types it unchanged.
const keep = "keep what matters"

// remedy returns the command that makes the job cheaper: a compaction of the session that each run reads again, else an edit of the file
// that says how often it runs and with what.
func (a *account) remedy() string {
	name := a.name
	if !plaintext.IsWord(name, "._-") || strings.HasPrefix(name, "-") {
		name = a.id
	}
	switch {
	case a.persistent:
		return fmt.Sprintf("ollim session compact routine:%s %q", name, keep)
	case a.id == session.MainKey && !a.seen:
		return fmt.Sprintf("ollim session compact %s %q", session.MainKey, keep)
	case a.kind == string(job.Routine):
		return "ollim routine edit " + name
	case a.kind == string(job.Webhook):
		return "ollim webhook edit " + name
	}
	return "ollim cost --by day --since 14d"
}

// TellBill tells the owner what is wrong with the bill, and when it no longer is. It is called once a day.
func TellBill(ctx context.Context, h app.Home) error {
	bill := NewBill(h.Disk.Now(), h.Config.Zone)
	if _, err := bill.Read(h.Runs); err != nil {
		return err
	}
	month, err := monthOf(h)
	if err != nil {
		return err
	}
	book := h.Runner(false).Notify()
	if month.Spent >= month.Limit { // the limit itself is a cause now
		err = book.Drop(ctx, Finding{Subject: MonthSubject}.cause().Key())
	}
	var causes []notify.Cause
	for _, f := range bill.Findings(month) {
		causes = append(causes, f.cause())
	}
	return errors.Join(err, book.Keep(ctx, notify.Bill, causes, "is within bounds again"))
}

func (f Finding) cause() notify.Cause {
	c := notify.Cause{Kind: notify.Bill, Subject: f.Subject, Name: f.Name, Text: strings.ToUpper(f.Text[:1]) + f.Text[1:], Remedy: f.Remedy()}
	for i, id := range f.Jobs {
		c.Jobs = append(c.Jobs, notify.Affected{ID: id, Name: f.names[i]})
	}
	return c
}
