package doctor

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/slot"
)

// Entries is what a scheduler has of ours.
type Entries struct {
	Installed bool
	Programs  []string // that they call
	Changes   int      // what `ollim schedule install` would change
	Other     string   // the data directory whose entries are there instead
}

// entries compares the installed entries with the routines. None is no fault: any program may run `ollim tick`, see tick.
func (e *examination) entries(ctx context.Context) string {
	var installed []string
	for _, scheduler := range []string{"crontab", "systemd", "systemd --system"} {
		remedy := "ollim schedule install " + scheduler
		found, err := e.Entries(ctx, scheduler)
		if faults := (yamldoc.Faults)(nil); errors.As(err, &faults) {
			e.warn("ollim check", "%s: not compared, because job files are invalid", scheduler)
		} else {
			e.fault(err, "")
		}
		if found.Other != "" {
			e.warn("ollim --data-dir '"+found.Other+"' schedule remove "+scheduler, "%s has the entries of another data directory, %s", scheduler, found.Other)
		}
		if !found.Installed {
			continue
		}
		installed = append(installed, scheduler)
		before := len(e.list)
		for _, program := range found.Programs {
			if _, err := os.Stat(program); err != nil {
				e.fail(remedy, "%s: its entries call %s, which does not exist", scheduler, program)
			}
		}
		if found.Changes > 0 && len(e.list) == before {
			e.warn(remedy, "%s: its entries are not current: %s", scheduler, plaintext.Count(found.Changes, "change"))
		}
	}
	if len(installed) == 0 {
		return "none installed"
	}
	return "current in " + strings.Join(installed, ", ")
}

// tick tells whether something runs `ollim tick` each minute, on which everything that is automatic depends.
func (e *examination) tick(context.Context) string {
	const remedy = "ollim schedule install crontab, or systemd; check that cron runs"
	if paused, until, err := e.home.Spend.Paused(); err != nil {
		e.fail("ollim resume", "%v", err)
	} else if paused {
		ending := ""
		if !until.IsZero() {
			ending = " until " + e.clockText(until)
		}
		e.warn("ollim resume", "automatic runs are paused%s", ending)
	}
	seen, err := tick.Seen(e.home.Dir)
	ago := e.App.Now().Sub(seen)
	report := e.fail
	if len(e.enabled()) == 0 {
		report = e.warn // nothing is to fire
	}
	switch {
	case err != nil:
		e.fault(err, "remove it")
	case seen.IsZero():
		report(remedy, "ollim tick was never seen")
	case ago > tick.Quiet:
		report(remedy, "ollim tick was last seen %s ago, at %s", ago.Round(time.Minute), e.clockText(seen))
	}
	return "seen in the last minutes"
}

func (e *examination) clockText(at time.Time) string {
	return at.In(e.home.Config.Zone).Format(time.RFC3339)
}

// lately is how far back the checks look at what has happened.
const lately = 24 * time.Hour

// slots looks for scheduled times that no run answered.
func (e *examination) slots(context.Context) string {
	answers, err := e.home.Audit(e.App.Now().Add(-lately))
	e.fault(err, "")
	numbers := map[string]int{}
	for _, a := range answers {
		numbers[a.Outcome]++
	}
	const remedy = "ollim schedule audit --since 1d"
	if n := numbers[slot.Missed]; n > 0 {
		e.warn(remedy, "%s missed in the last day: the machine was off, or ollim tick did not run", plaintext.Count(n, "slot"))
	}
	if n := numbers[forecast.Unaccounted]; n > 0 {
		e.fail(remedy, "%s unaccounted for in the last day", plaintext.Count(n, "slot"))
	}
	return plaintext.Count(len(answers), "slot") + " in the last day"
}

// spending looks at limits that keep automatic runs from starting.
func (e *examination) spending(context.Context) string {
	totals, err := e.home.Spend.Totals()
	if err != nil {
		e.fault(err, "")
		return ""
	}
	const remedy = "wait, or raise it: ollim config set spend."
	limits := totals.Limits
	if limits.PerRun == 0 {
		e.fail("ollim config set spend.per-run 1.00", "no automatic run may start: spend.per-run is 0")
	}
	if totals.Today.Spent >= limits.PerDay {
		e.warn(remedy+"per-day", "no automatic run starts today: $%.2f of $%.2f are spent", totals.Today.Spent, limits.PerDay)
	}
	if totals.Month.Spent >= limits.PerMonth {
		e.warn(remedy+"per-month", "no automatic run starts this month: $%.2f of $%.2f are spent", totals.Month.Spent, limits.PerMonth)
	}
	if totals.Runs >= limits.RunsPerDay {
		e.warn(remedy+"runs-per-day", "no automatic run starts today: there were %d of %d", totals.Runs, limits.RunsPerDay)
	}
	return "below the limits"
}
