package spend

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"time"
)

// Limits bound what automatic runs may spend, in USD by run, day and month, and how many may reach an engine in a day. 0
// means none at all, and so does what makes no sense (negative, not a number). No limit is +Inf, or anything above a
// thousand million, and for runs math.MaxInt; in the configuration that is the word "none", which no slip of the hand makes.
type Limits struct {
	PerRun, PerDay, PerMonth float64
	RunsPerDay               int
}

// MarshalJSON writes a limit that is none as null, since JSON has no infinity.
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
	Key      string    // of the configuration: per-run, per-day, per-month or runs-per-day
	Used     float64   // USD; for runs-per-day their number
	Reserved float64   // USD, by runs under way
	Allowed  float64   // as Used
	Until    time.Time // when the next day or month begins, in the book's zone; zero for per-run, which time does not lift
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
	if e.Passing() {
		earlier = " or a run under way ends"
	}
	return fmt.Sprintf("limit %s: %.2f spent%s of %.2f USD, until %s%s", e.Key, e.Used, reserved, e.Allowed, e.Until.Format(time.RFC3339), earlier)
}

// Passing says that the limit is reached only by what runs under way have reserved, so that it may lift before Until.
func (e *Limit) Passing() bool { return e.Used < e.Allowed }

// The keys of the configuration below spend.
const (
	perRun     = "per-run"
	perDay     = "per-day"
	perMonth   = "per-month"
	runsPerDay = "runs-per-day"
)

// ceiling is a limit as money.
func ceiling(limit float64) money {
	if limit > highest.usd() {
		return unlimited
	}
	return known(limit, 0)
}

// grant is what a run that wishes for so much may cost, or the limit that bars it: of several the one that lasts longest.
func (l Limits) grant(p *page, now time.Time, wish money, force bool) (money, *Limit) {
	run := ceiling(l.PerRun)
	if force {
		if run == 0 {
			run = unlimited
		}
		return min(wish, run), nil
	}
	today, runs := p.sum(label(now))
	month, _ := p.sum(monthOf(now))
	leftToday, leftMonth := today.left(ceiling(l.PerDay)), month.left(ceiling(l.PerMonth))
	switch {
	case run == 0:
		return 0, &Limit{Key: perRun}
	case leftMonth == 0:
		return 0, exhausted(perMonth, month, l.PerMonth, turn(now, monthOf))
	case leftToday == 0:
		return 0, exhausted(perDay, today, l.PerDay, turn(now, label))
	case runs >= l.RunsPerDay:
		return 0, &Limit{runsPerDay, float64(runs), 0, float64(max(0, l.RunsPerDay)), turn(now, label)}
	}
	return min(wish, run, leftMonth, leftToday), nil
}

func exhausted(key string, s sum, limit float64, until time.Time) *Limit {
	return &Limit{key, s.spent.usd(), s.reserved.usd(), ceiling(limit).usd(), until}
}

// turn is the first second after now at which a label changes. It searches, because midnight does not exist on every day
// in every zone.
func turn(now time.Time, of func(time.Time) string) time.Time {
	const month = 32 * 24 * 60 * 60 // and a little
	at := func(i int) time.Time { return now.Truncate(time.Second).Add(time.Duration(i) * time.Second) }
	return at(sort.Search(month, func(i int) bool { return of(at(i)) > of(now) }))
}
