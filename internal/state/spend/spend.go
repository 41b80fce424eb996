// Package spend enforces the spending limits and stores the pause switch. A run reserves its likely cost before it reaches an
// engine, raises the reservation as it spends, and replaces it by the actual cost at its end, so that concurrent processes
// together stay within the limits.
//
// In the ledger, with amounts in USD, exact to a millionth: money.reserved, raised, settled and released, and money.found, a whole page.
// The page, which results from them, has the cost and the number of runs of each day, the runs in progress, and what the next run of each
// job is likely to cost.
//
// A run that continues with an answer has another entry, "<run>+1" and so on: each part of it counts on its own day.
//
// A job's likely cost follows its most expensive recent run: a more expensive run raises it, and each cheaper one lowers it by
// a quarter of the difference.
//
// A run counts, whole, on the day and in the month in which it reserved, by the calendar of the book's zone.
//
// Setting the clock back frees no money: what is dated later than today counts today as well. money.dated notes that today was seen, and
// from the day after it counts by its own date alone. So a clock that was once years ahead blocks one day and one month.
//
// Reservations and raises do not wait for the disk. Sync does, for all of them: a run calls it before each request but its first, and
// before what makes several requests, so that a power failure hides one request of each run at most. The first settlement of a run that has
// reserved does not wait either: a power failure that undoes it leaves the reservation, which then counts until the run is found dead and
// settled from its record. A correction and a release wait, and so does the settlement of an unknown run, because nothing would do them
// again.
//
// Accounts that are not in the ledger are made from Book.Past, so that neither a crash nor rm frees money. Days are kept for two months, a
// settled run until there have been runs on two later days, or two hundred that began later have settled: what a run costs here does not
// grow with the number of runs.
//
// state/pause.json, changed under the lock "pause", stops every automatic fire while it is there: {"until": "<time>"}, or {}
// until it is removed. An invalid file stops them too.
package spend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
)

// Book holds the accounts of one data directory. Besides those that its methods name, an error is one of ledger.Ledger.Change; then the run
// is not counted and must not start. Every method that changes something may be repeated.
type Book struct {
	Ledger *ledger.Ledger
	Home   paths.Dir
	Disk   store.Disk
	Zone   *time.Location
	Limits Limits

	// Past returns every run since an instant that reached an engine, from the run records. It is called if the ledger has no accounts;
	// without it they would begin at zero.
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
// under the lock of the ledger and must not use it.
type look func(run string) (cost float64, alive bool)

// Claim is the request of a run before it starts.
type Claim struct {
	Run, Job string  // ids
	Most     float64 // highest cost in USD according to the job file; 0 if it sets none
	Force    bool    // the owner started the run: it is counted and never refused

	// With returns the facts that happen together with the reservation, which it is given in USD; nil: none. It is called under the lock of
	// the ledger and must not use it.
	With func(reserved float64) []ledger.Fact
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
	err := b.edit(ctx, c.Run, func(a *change) error {
		if e, known := a.Runs[c.Run]; known {
			reserved, most = e.granted(), b.Limits.most(&a.page, a.now, wish, e.Owner)
			a.join(c, reserved)
			return e.open(c.Run)
		}
		a.d = store.Buffered
		a.reclaim(look)
		most = b.Limits.most(&a.page, a.now, wish, c.Force)
		var limit *Limit
		if reserved, limit = b.grant(&a.page, a.now, c, most); limit != nil {
			return limit
		}
		a.add(reservation, move{Run: c.Run, Job: c.Job, Owner: c.Force, Reserved: reserved.limited()})
		a.join(c, reserved)
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
	err = b.edit(ctx, run, func(c *change) error {
		if _, known := c.Runs[run]; !known { // the accounts were lost
			c.add(reservation, move{Run: run, Reserved: 1})
		}
		e := c.Runs[run]
		if err := e.open(run); err != nil {
			return err
		}
		c.d = store.Buffered
		var limit *Limit
		if grant, limit = b.raised(&c.page, c.now, e, low, high); limit != nil {
			c.reclaim(look)
			grant, limit = b.raised(&c.page, c.now, e, low, high)
		}
		switch {
		case limit != nil:
			return limit
		case grant > e.granted():
			c.add(raise, move{Run: run, Reserved: grant})
		}
		return nil
	})
	return min(grant, high).usd(), err
}

// Sync waits until the reservations and raises of this process are on disk.
func (b Book) Sync() error { return b.Ledger.Sync() }

// Settle replaces the reservation of a run by its actual cost, in USD. The latest call counts: settling again with another cost corrects
// it, even after the run was taken for dead. A run that is not in the book, because the ledger was lost or two hundred later runs have
// settled since, is counted today. The error is errCost if cost is invalid.
func (b Book) Settle(ctx context.Context, run string, cost float64) error {
	m, err := toMoney(cost)
	if err != nil {
		return err
	}
	return b.edit(ctx, run, func(c *change) error {
		if e, known := c.Runs[run]; known && e.Settled == "" {
			c.d = store.Buffered
		}
		c.add(settlement, move{Run: run, Cost: m})
		return nil
	})
}

// Release drops the reservation of a run that ended before it spent anything: it is not counted. needs is the amount in
// USD that the run turned out to need, which the next run of its job reserves; 0 if unknown. A run that has settled a
// cost or is unknown stays as it is.
func (b Book) Release(ctx context.Context, run string, needs float64) error {
	return b.edit(ctx, run, func(c *change) error {
		if e, found := c.Runs[run]; found && (e.Settled == "" || e.Cost == 0) {
			c.add(release, move{Run: run, Needs: known(needs, 0)})
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

// Totals returns the current totals. It takes no lock; the figures are those that the next Reserve will use.
func (b Book) Totals() (totals, error) {
	now := b.now()
	p, err := b.accounts()
	if err == nil && p.Days == nil {
		p, err = b.rebuilt("", now)
	}
	if err != nil {
		return totals{}, err
	}
	today, month := p.sum(label(now)), p.sum(monthOf(now))
	return totals{today.usd(), month.usd(), today.runs, today.typed, b.Limits}, nil
}

// accounts returns a copy of the page.
func (b Book) accounts() (p page, err error) {
	err = b.Ledger.Read(func(v ledger.View) error {
		state, err := ledger.Of(v, Facts())
		if err == nil {
			p = state.copied()
		}
		return err
	})
	return p, err
}

func (b Book) now() time.Time { return b.Disk.Now().In(b.Zone) }

// errLost is the error of a change of accounts that are not in the ledger.
var errLost = errors.New("the ledger has no accounts")

// edit changes the accounts on behalf of a run. If do fails, nothing is written. The records of the runs, which may be many, are read
// before the ledger is locked.
func (b Book) edit(ctx context.Context, run string, do func(*change) error) error {
	err := b.try(ctx, page{}, do)
	if errors.Is(err, errLost) {
		var p page
		if p, err = b.rebuilt(run, b.now()); err == nil {
			err = b.try(ctx, p, do)
		}
	}
	return err
}

// try changes the accounts, which are those of lost if the ledger has none.
func (b Book) try(ctx context.Context, lost page, do func(*change) error) error {
	var limit *Limit
	err := b.Ledger.Change(ctx, store.Buffered, func(tx *ledger.Tx) error {
		state, err := ledger.Of(tx.View, Facts())
		if err != nil {
			return err
		}
		c := &change{page: state.copied(), now: b.now(), d: store.Synced}
		switch {
		case c.Days == nil && lost.Days == nil:
			return errLost
		case c.Days == nil:
			c.page, c.facts = lost.copied(), append(c.facts, found{lost})
		}
		dated := len(c.unnoted(label(c.now))) > 0
		if dated {
			c.add(sighting, move{})
		}
		n := len(c.facts)
		err = do(c)
		if dated && errors.As(err, &limit) { // a book that refuses every run must also learn that a day has passed
			c.facts, err = c.facts[:n], nil
		}
		if err != nil {
			return err
		}
		tx.Needs(c.d)
		return tx.Add(c.facts...)
	})
	if err == nil && limit != nil {
		return limit
	}
	return err
}

// rebuilt returns accounts made from the records of the runs. It omits the calling run, which adds its own amount next.
func (b Book) rebuilt(run string, now time.Time) (page, error) {
	p := newPage()
	if b.Past == nil {
		return p, nil
	}
	runs, err := b.Past(now.AddDate(0, 0, -31)) // earlier months do not count
	if err != nil {
		return p, fmt.Errorf("the accounts of spending cannot be made from the records of the runs: %w", err)
	}
	for _, r := range runs {
		if r.Run != run {
			p.recall(r, b.Limits, b.Zone)
		}
	}
	return p, nil
}
