package spend

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"time"
)

// Limits bound the cost of automatic runs, in USD by run, day and month, and the number of runs that may reach an
// engine in a day. 0 allows nothing, and so does an invalid value (negative, NaN). Unlimited is +Inf, or anything above
// a thousand million, and for runs math.MaxInt; the configuration spells it "none", which cannot be a typing error.
type Limits struct {
	PerRun, PerDay, PerMonth float64
	RunsPerDay               int
}

// MarshalJSON writes an infinite limit as null, since JSON has no infinity.
func (l Limits) MarshalJSON() ([]byte, error) {
	usd := func(limit float64) *float64 {
		if v := ceiling(limit).usd(); !math.IsInf(v, 1) {
			return &v
		}
		return nil
	}
	runs := &l.RunsPerDay
	if l.RunsPerDay == math.MaxInt {
		runs = nil
	}
	return json.Marshal(map[string]any{
		"per_run": usd(l.PerRun), "per_day": usd(l.PerDay), "per_month": usd(l.PerMonth), "runs_per_day": runs,
	})
}

// Limit is the error of a run that may not start.
type Limit struct {
	Key      string    // key of the configuration: per-run, per-day, per-month or runs-per-day
	Used     float64   // USD; a number of runs for runs-per-day
	Reserved float64   // USD that runs in progress have reserved
	Allowed  float64   // the limit, in the unit of Used
	Needs    float64   // amount that the run needs, in the unit of Used
	Until    time.Time // when the next day or month begins, in the book's zone; zero for per-run, which does not end with time

	// Passing reports whether the limit is reached only by the reservations of runs in progress, so that it may lift before Until.
	Passing bool
}

func (e *Limit) Error() string {
	switch e.Key {
	case perRun:
		return "limit per-run: nothing may be spent"
	case runsPerDay:
		return fmt.Sprintf("limit runs-per-day: %.0f of %.0f, until %s", e.Used, e.Allowed, e.Until.Format(time.RFC3339))
	}
	reserved, earlier := "", ""
	if e.Reserved > 0 {
		reserved = fmt.Sprintf(" and %.2f reserved", e.Reserved)
	}
	if e.Passing {
		earlier = " or a run under way ends"
	}
	return fmt.Sprintf("limit %s: %.2f spent%s of %.2f USD, until %s%s", e.Key, e.Used, reserved, e.Allowed, e.Until.Format(time.RFC3339), earlier)
}

// Keys of the section spend in the configuration.
const (
	perRun     = "per-run"
	perDay     = "per-day"
	perMonth   = "per-month"
	runsPerDay = "runs-per-day"
)

func ceiling(limit float64) money {
	if limit > highest.usd() {
		return unlimited
	}
	return known(limit, 0)
}

// most returns the highest possible cost of a run that asks for wish. It is never 0.
func (l Limits) most(p *page, now time.Time, wish money, force bool) money {
	run := ceiling(l.PerRun)
	if force {
		if run == 0 {
			run = unlimited
		}
		return min(wish, run)
	}
	today, month := p.sum(label(now)), p.sum(monthOf(now))
	return max(1, min(wish, run, today.unspent(ceiling(l.PerDay)), month.unspent(ceiling(l.PerMonth))))
}

// grant returns the amount to reserve for a run that may cost at most most, or the limit that prevents the run. Of several limits it
// returns the one that lasts longest.
func (b Book) grant(p *page, now time.Time, c Claim, most money) (money, *Limit) {
	l := b.Limits
	want := b.likely(p, c.Job, most)
	if c.Force {
		return want, nil
	}
	today, month := p.sum(label(now)), p.sum(monthOf(now))
	switch {
	case ceiling(l.PerRun) == 0:
		return 0, &Limit{Key: perRun, Needs: 1}
	case month.left(ceiling(l.PerMonth)) < want:
		return 0, exhausted(perMonth, month, l.PerMonth, want, turn(now, monthOf))
	case today.left(ceiling(l.PerDay)) < want:
		return 0, exhausted(perDay, today, l.PerDay, want, turn(now, label))
	case today.runs >= l.RunsPerDay:
		return 0, &Limit{runsPerDay, float64(today.runs), 0, float64(max(0, l.RunsPerDay)), 1, turn(now, label), false}
	}
	return want, nil
}

// likely returns the likely cost of a run that may cost at most most.
func (b Book) likely(p *page, job string, most money) money {
	if h, known := p.Jobs[job]; known {
		return max(1, min(h.Likely, most))
	}
	some := min(most, ceiling(b.Limits.PerDay), ceiling(b.Limits.PerMonth))
	if some == unlimited || some == 0 { // the run has no limit, or only passes because of force
		some = most
	}
	if some == unlimited {
		return unlimited
	}
	return max(1, b.share(some))
}

func (b Book) share(of money) money { return of / money(max(1, b.Share)) }

// raised returns the new reservation of a run that needs low and asks for high, or the limit that prevents it.
func (b Book) raised(p *page, now time.Time, e entry, low, high money) (money, *Limit) {
	have := e.granted()
	if e.Owner || have >= high {
		return high, nil
	}
	date, today := e.Day, label(now)
	day, month := p.of(date), p.of(date[:min(len(date), len(monthOf(now)))])
	if date >= today {
		day, month = p.sum(today), p.sum(monthOf(now))
	}
	leftDay, leftMonth := day.left(ceiling(b.Limits.PerDay)), month.left(ceiling(b.Limits.PerMonth))
	switch more := low - have; {
	case leftMonth < more:
		return 0, exhausted(perMonth, month, b.Limits.PerMonth, low, turn(now, monthOf))
	case leftDay < more:
		return 0, exhausted(perDay, day, b.Limits.PerDay, low, turn(now, label))
	}
	left := min(leftDay, leftMonth)
	if left == unlimited {
		return high, nil
	}
	return min(high, max(low, have+b.share(left))), nil
}

func exhausted(key string, s sum, limit float64, needs money, until time.Time) *Limit {
	return &Limit{key, s.spent.usd(), s.reserved.usd(), ceiling(limit).usd(), needs.usd(), until, s.unspent(ceiling(limit)) >= needs}
}

// turn returns the first second after now at which a label changes. It searches for it, because some zones have days without a midnight.
func turn(now time.Time, of func(time.Time) string) time.Time {
	const month = 32 * 24 * 60 * 60 // seconds, with a margin
	at := func(i int) time.Time { return now.Truncate(time.Second).Add(time.Duration(i) * time.Second) }
	return at(sort.Search(month, func(i int) bool { return of(at(i)) > of(now) }))
}
