// Package spend enforces the spending limits and stores the pause switch. A run reserves its likely cost before it reaches an
// engine, raises the reservation as it spends, and replaces it by the actual cost at its end, so that concurrent processes
// together stay within the limits.
//
// On disk: state/spend.json, changed under the lock "spend". Amounts are in USD, exact to a millionth:
//
//	{
//	  "days": {"2026-02-24": {"spent": 0.42, "runs": 3, "owner": 1}},  of settled runs; all runs, and those of the owner
//	  "runs": {
//	    "<run>": {"day": "2026-02-24", "job": "<job>", "reserved": 0.25},    in progress, or dead and not yet found so
//	    "<run>": {"day": "2026-02-24", "cost": 0.05, "settled": "2026-02-25"}
//	  },
//	  "jobs": {"<job>": {"likely": 0.05, "day": "2026-02-24"}}  what the next run of the job is likely to cost
//	}
//
// A run that continues with an answer has another entry, "<run>+1" and so on: each part of it counts on its own day.
//
// A job's likely cost follows its most expensive recent run: a more expensive run raises it, and each cheaper one lowers it by
// a quarter of the difference.
//
// A run counts, whole, on the day and in the month in which it reserved, by the calendar of the book's zone.
//
// Setting the clock back frees no money: what is dated later than today counts today as well. It is noted as such ("also"),
// and from the day after it counts by its own date alone; so a clock that was once years ahead blocks one day and one month.
//
// A file that is missing or cannot be parsed is rebuilt from Book.Past, so that neither a crash nor rm frees money. Keys of
// spend.json that this version does not know are kept, at its top level. Days are kept for two months, a settled run until
// there have been runs on two later days, or two hundred that began later have settled: what a run costs here does not grow with
// the number of runs.
//
// state/pause.json, changed under the lock "pause", stops every automatic fire while it is there: {"until": "<time>"}, or {}
// until it is removed. An invalid file stops them too.
package spend

import (
	"context"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
)

// Book holds the accounts of one data directory. Besides those that its methods name, an error wraps *store.NotWritten,
// *lock.Failed, or lock.ErrBusy after ten seconds; then the run is not counted and must not start. Every method that
// changes something may be repeated.
type Book struct {
	Home   paths.Dir
	Disk   store.Disk
	Zone   *time.Location
	Limits Limits

	// Past returns every run since an instant that reached an engine, from the run records. It is called if spend.json is missing or
	// corrupt; without it the accounts would begin at zero. It is called under the lock and must not use the book.
	Past func(since time.Time) ([]Past, error)

	// Share limits the part of the money that one run takes. A run without a known cost reserves one part in Share of its highest
	// possible cost, and a raise takes at most one part in Share of what is left. 0 and 1 mean all of it.
	Share int
}

// Past is a run as its record describes it.
type Past struct {
	Run     string
	Job     string
	Started time.Time
	Cost    float64 // USD; if negative, the cost is unknown and Limits.PerRun is assumed
	Alive   bool    // the run may still spend, so Limits.PerRun is reserved for it
	Owner   bool    // the owner started it
}

// look returns the state of a run that has reserved and not settled. It is alive as long as any part of it, including
// an orphaned engine, can spend. Otherwise cost is the cost in its record in USD, negative if unknown. Look is called
// under the lock and must not use the book.
type look func(run string) (cost float64, alive bool)

// Claim is the request of a run before it starts.
type Claim struct {
	Run, Job string  // ids
	Most     float64 // highest cost in USD according to the job file; 0 if it sets none
	Force    bool    // the owner started the run: it is counted and never refused
}

// granted is the amount granted to a run, in USD; +Inf is unlimited.
type granted struct {
	Reserved float64
	Most     float64 // the highest cost that the run may reach; more than Reserved requires Raise
}

// Reserve admits a run and counts it. It reserves the run's likely cost: the cost of the job's recent runs, else the
// Book's share of the run's highest possible cost. That highest cost is the smallest of the claim's, Limits.PerRun and
// what is unspent today and this month. If less than the likely cost is unspent, all of that is reserved.
//
// The error is a *Limit if too little is left; then nothing is reserved. With Force the run is never refused; Most and
// PerRun still bound it, unless PerRun is 0.
//
// Reserve also settles dead runs: at the cost that look returns, else at their whole reservation. A nil look treats every run as alive. A
// run that has reserved already is granted the same again. A run that has settled is an error, as is an invalid c.Most (errCost).
func (b Book) Reserve(ctx context.Context, c Claim, look look) (granted, error) {
	wish := unlimited
	if c.Most != 0 {
		m, err := toMoney(c.Most)
		if err != nil {
			return granted{}, err
		}
		wish = max(m, 1)
	}
	var reserved, most money
	err := b.edit(ctx, c.Run, func(p *page, now time.Time) error {
		e, known := p.Runs[c.Run]
		if known {
			reserved, most = e.granted(), b.Limits.most(p, now, wish, e.Owner)
			return e.open(c.Run)
		}
		today := label(now)
		p.reclaim(look, today)
		most = b.Limits.most(p, now, wish, c.Force)
		var limit *Limit
		if reserved, limit = b.grant(p, now, c, most); limit != nil {
			return limit
		}
		p.Runs[c.Run] = newEntry(today, c, reserved)
		p.count(today, 1, c.Force)
		return nil
	})
	if err != nil {
		return granted{}, err
	}
	return granted{reserved.usd(), most.usd()}, nil
}

// Raise raises the reservation of a run to at least least USD in all, and up to most if enough is left for others:
// beyond least it takes at most the Book's share of what is left. It returns what the run may now cost, at most most.
// The error is a *Limit if least is not available, even after dead runs were settled as by Reserve; the reservation is
// then unchanged. A run of the owner's gets all it asks for.
func (b Book) Raise(ctx context.Context, run string, least, most float64, look look) (granted float64, err error) {
	low, err := toMoney(least)
	if err != nil {
		return 0, err
	}
	high, err := toMoney(max(least, most))
	if err != nil {
		return 0, err
	}
	var grant money
	err = b.edit(ctx, run, func(p *page, now time.Time) error {
		e, known := p.Runs[run]
		if !known { // spend.json was lost
			e = newEntry(label(now), Claim{Run: run}, 1)
			p.count(e.Day, 1, false)
		}
		if err := e.open(run); err != nil {
			return err
		}
		var limit *Limit
		if grant, limit = b.raised(p, now, e, low, high); limit != nil {
			p.reclaim(look, label(now))
			grant, limit = b.raised(p, now, e, low, high)
		}
		if limit != nil {
			return limit
		}
		if e.Reserved != 0 { // otherwise the run has no limit
			e.Reserved = max(e.Reserved, grant)
		}
		p.Runs[run] = e
		return nil
	})
	return min(grant, high).usd(), err
}

// Settle replaces the reservation of a run by its actual cost, in USD. The latest call counts: settling again with another cost corrects
// it, even after the run was taken for dead. A run that is not in the book, because spend.json was lost or two hundred later runs have
// settled since, is counted today. The error is errCost if cost is invalid.
func (b Book) Settle(ctx context.Context, run string, cost float64) error {
	m, err := toMoney(cost)
	if err != nil {
		return err
	}
	return b.edit(ctx, run, func(p *page, now time.Time) error {
		today := label(now)
		if _, known := p.Runs[run]; !known {
			p.Runs[run] = entry{Day: today}
			p.count(today, 1, false)
		}
		p.settle(run, m, today)
		return nil
	})
}

// Release drops the reservation of a run that ended before it spent anything: it is not counted. needs is the amount in
// USD that the run turned out to need, which the next run of its job reserves; 0 if unknown. A run that has settled a
// cost or is unknown stays as it is.
func (b Book) Release(ctx context.Context, run string, needs float64) error {
	return b.edit(ctx, run, func(p *page, now time.Time) error {
		if e, found := p.Runs[run]; found && (e.Settled == "" || e.Cost == 0) {
			delete(p.Runs, run)
			p.count(e.Day, -1, e.Owner)
			p.learn(e.Job, max(p.Jobs[e.Job].Likely, known(needs, 0)), label(now))
		}
		return nil
	})
}

// totals are the totals of the accounts.
type totals struct {
	Today  amounts `json:"today"`
	Month  amounts `json:"month"`
	Runs   int     `json:"runs"`  // runs of today
	Typed  int     `json:"typed"` // how many of Runs the owner started
	Limits Limits  `json:"limits"`
}

// amounts are amounts in USD.
type amounts struct {
	Spent    float64 `json:"spent"`
	Reserved float64 `json:"reserved"` // reserved by runs in progress, and by dead runs until the next Reserve
}

// Totals returns the current totals. It takes no lock and is read-only, so a file that cannot be parsed only causes a
// warning; the figures are those that the next Reserve will use.
func (b Book) Totals() (totals, error) {
	path := b.Home.State("spend.json")
	p, invalid, err := store.PeekJSON[page](path)
	if err != nil {
		return totals{}, err
	}
	if invalid != nil {
		b.Disk.Warn(fmt.Sprintf("%s: not valid (%v)", path, invalid))
	}
	now := b.now()
	if err := b.begin(&p, "", now); err != nil {
		return totals{}, err
	}
	today, month := p.sum(label(now)), p.sum(monthOf(now))
	return totals{today.usd(), month.usd(), today.runs, today.typed, b.Limits}, nil
}

func (b Book) now() time.Time { return b.Disk.Now().In(b.Zone) }

// edit changes the accounts under their lock on behalf of a run. If change fails, nothing is written.
func (b Book) edit(ctx context.Context, run string, change func(*page, time.Time) error) error {
	path := b.Home.State("spend.json")
	return store.EditJSON(ctx, b.Disk, b.Home.Lock("spend"), path, func(p *page) error {
		now := b.now()
		err := b.begin(p, run, now)
		if err == nil && p.note(label(now)) { // write it at once: a book that refuses every run would otherwise never learn that a day has passed
			err = store.WriteJSON(path, p, store.Synced)
		}
		if err == nil {
			err = change(p, now)
		}
		p.forget(label(now))
		p.forgetRuns(run)
		return err
	})
}

// begin fills a page that was not read from disk. It omits the calling run, which adds its own amount next.
func (b Book) begin(p *page, run string, now time.Time) error {
	if p.rest != nil {
		return nil
	}
	*p = newPage()
	if b.Past == nil {
		return nil
	}
	runs, err := b.Past(now.AddDate(0, 0, -31)) // earlier months do not count
	if err != nil {
		return fmt.Errorf("%s: cannot be rebuilt: %w", b.Home.State("spend.json"), err)
	}
	for _, r := range runs {
		if r.Run != run {
			p.recall(r, b.Limits, b.Zone)
		}
	}
	return nil
}
