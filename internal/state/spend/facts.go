package spend

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
)

// move is a fact about one run. Amounts that do not belong to its kind are absent.
type move struct {
	kind  string
	Run   string `json:"run,omitempty"`
	Day   string `json:"day,omitempty"` // when it happened, by the calendar of the book's zone
	Job   string `json:"job,omitempty"`
	Owner bool   `json:"owner,omitempty"`

	Reserved money `json:"reserved,omitempty"` // in all; 0 of a money.reserved is no limit
	Cost     money `json:"cost,omitempty"`
	Needs    money `json:"needs,omitempty"`
}

func (m move) Fact() string { return m.kind }

// found is a page that replaces the one before: that of an earlier version, or one that was made from the records of the runs.
type found struct{ page }

func (found) Fact() string { return "money.found" }

// The kinds of a move.
const (
	reservation = "money.reserved"
	raise       = "money.raised"
	settlement  = "money.settled"
	release     = "money.released"
	sighting    = "money.dated" // of a day before one with costs, or of that day itself
)

// effects returns what each kind of move does to a page.
func effects() map[string]func(*page, move) {
	return map[string]func(*page, move){
		reservation: (*page).reserve, raise: (*page).raise, settlement: (*page).settle, release: (*page).release, sighting: (*page).note,
	}
}

// Facts returns the book of the accounts.
func Facts() *ledger.Book[page] {
	rules := []ledger.Rule[page]{ledger.On(found{}.Fact(), func(p *page, _ time.Time, f found) {
		*p = newPage()
		maps.Copy(p.Days, f.Days)
		maps.Copy(p.Runs, f.Runs)
		maps.Copy(p.Jobs, f.Jobs)
		p.forgetRuns("")
	})}
	for kind, do := range effects() {
		rules = append(rules, ledger.On(kind, func(p *page, _ time.Time, m move) {
			if p.Days != nil { // otherwise nothing is known
				do(p, m)
			}
		}))
	}
	return ledger.NewBook("money", rules...)
}

// change is the accounts while they are changed.
type change struct {
	page            // with the facts
	now   time.Time // in the book's zone
	facts []ledger.Fact
	d     store.Durability
}

// add adds a fact of today.
func (c *change) add(kind string, m move) {
	m.kind, m.Day = kind, label(c.now)
	effects()[kind](&c.page, m)
	c.facts = append(c.facts, m)
}

// join adds the facts that happen together with the reservation of a claim, and wait for the disk.
func (c *change) join(claim Claim, reserved money) {
	if claim.With == nil {
		return
	}
	if with := claim.With(reserved.usd()); len(with) > 0 {
		c.facts, c.d = append(c.facts, with...), store.Synced
	}
}

// reclaim settles dead runs.
func (c *change) reclaim(look look) {
	for _, run := range slices.Sorted(maps.Keys(c.Runs)) {
		if e := c.Runs[run]; e.Settled == "" && look != nil {
			if cost, alive := look(run); !alive {
				c.add(settlement, move{Run: run, Cost: known(cost, e.Reserved)})
			}
		}
	}
}

// Former is the name of the file of earlier versions in state/.
const Former = "spend.json"

// Import adds the page of an earlier version. A file without one adds nothing, so that the accounts are made from the records of the runs.
func (b Book) Import(tx *ledger.Tx) error {
	p, invalid, err := store.PeekJSON[page](b.Home.State(Former))
	if err == nil && p.Days != nil && p.Runs != nil {
		err = tx.Add(found{p})
	}
	tx.After(func(err error) {
		if err == nil && invalid != nil {
			b.Disk.Warn(fmt.Sprintf("%s: not valid (%v): the accounts were made from the records of the runs", b.Home.State("former", Former), invalid))
		}
	})
	return err
}
