// Package gate stores what is known about the gates of jobs with gate-audit: how often a gate has closed, which run audits it, and that it
// is off, because a run that it would have skipped told the owner something.
//
// In the ledger: gate.closed, a fire that the gate ended; gate.audit, a fire that the gate would have ended and whose run goes on;
// gate.audited, that the run had nothing to tell, or did not get that far; gate.off, that it had. A fact is about the text of a gate, which
// its digest names. The first fact about another text replaces what is known, so a gate that was changed is on again.
package gate

import (
	"context"
	"maps"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
)

// Book holds the facts of one data directory. For its errors see ledger.Ledger.Change.
type Book struct{ Ledger *ledger.Ledger }

// Gate is what is known about the gate of a job.
type Gate struct {
	Digest string    `json:"digest"`           // of the text of the gate, SHA-256 in hex
	Closed int       `json:"closed"`           // fires that it has ended since the last audit
	Audit  string    `json:"audit,omitempty"`  // the run that audits it; "": none
	Off    string    `json:"off,omitempty"`    // the run that turned it off; "": it is on
	OffAt  time.Time `json:"off_at,omitzero"`  // when that run ended
	Told   string    `json:"told,omitempty"`   // what that run did: "pinged", "reported" or "asked"
	Passed int       `json:"passed,omitempty"` // audits without a finding
}

// fact is what all facts of this package say.
type fact struct {
	kind string

	Job    string `json:"job"`
	Digest string `json:"digest"`
	Run    string `json:"run,omitempty"`
	Passed bool   `json:"passed,omitempty"` // gate.audited: the run came to its end
	Told   string `json:"told,omitempty"`   // gate.off
}

func (f fact) Fact() string { return f.kind }

// The kinds of facts.
const (
	closed  = "gate.closed"
	audit   = "gate.audit"
	audited = "gate.audited"
	off     = "gate.off"
)

// Gates are the gates by job.
type Gates map[string]Gate

// Facts returns the book of the gates.
func Facts() *ledger.Book[Gates] {
	on := func(kind string, change func(g *Gate, at time.Time, f fact)) ledger.Rule[Gates] {
		return ledger.On(kind, func(all *Gates, at time.Time, f fact) {
			if *all == nil {
				*all = Gates{}
			}
			g := (*all)[f.Job].of(f.Digest)
			change(&g, at, f)
			(*all)[f.Job] = g
		})
	}
	return ledger.NewBook("gate",
		on(closed, func(g *Gate, _ time.Time, _ fact) { g.Closed++ }),
		on(audit, func(g *Gate, _ time.Time, f fact) { g.Audit = f.Run }),
		on(audited, func(g *Gate, _ time.Time, f fact) {
			if g.Audit != f.Run {
				return
			}
			if g.Audit = ""; f.Passed {
				g.Closed, g.Passed = 0, g.Passed+1
			}
		}),
		on(off, func(g *Gate, at time.Time, f fact) { g.Audit, g.Off, g.OffAt, g.Told = "", f.Run, at, f.Told }),
	)
}

// of returns what is known about a text of the gate: nothing, if it is another one.
func (g Gate) of(digest string) Gate {
	if g.Digest != digest {
		return Gate{Digest: digest}
	}
	return g
}

// Of returns what is known about the gate of a job, if its text has a digest.
func (b Book) Of(job, digest string) (g Gate, err error) {
	all, err := b.List()
	return all[job].of(digest), err
}

// List returns what is known about all gates.
func (b Book) List() (all Gates, err error) {
	err = b.Ledger.Read(func(v ledger.View) error {
		gates, err := ledger.Of(v, Facts())
		if err == nil {
			all = maps.Clone(*gates)
		}
		return err
	})
	return all, err
}

// Close notes that a gate has ended a fire, or, each every-th time, that the run goes on to audit it. A count that a power failure undoes
// only delays the next audit.
func (b Book) Close(ctx context.Context, job, digest, run string, every int) (audits bool, err error) {
	err = b.Ledger.Change(ctx, store.Buffered, func(tx *ledger.Tx) error {
		all, err := ledger.Of(tx.View, Facts())
		if err != nil {
			return err
		}
		f := fact{kind: closed, Job: job, Digest: digest}
		if audits = (*all)[job].of(digest).Closed+1 >= every; audits {
			f.kind, f.Run = audit, run
		}
		return tx.Add(f)
	})
	return audits, err
}

// End notes what came of the run that audits a gate. told is what it did to tell the owner something, which turns the gate off; "":
// nothing. passed says that it came to its end; otherwise the next fire that the gate closes is an audit again. Nothing is noted if the run
// does not audit the gate, or that is noted already.
func (b Book) End(ctx context.Context, job, run, told string, passed bool) error {
	return b.Ledger.Change(ctx, store.Synced, func(tx *ledger.Tx) error {
		all, err := ledger.Of(tx.View, Facts())
		if err != nil {
			return err
		}
		g := (*all)[job]
		if g.Audit == "" || g.Audit != run {
			return nil
		}
		f := fact{kind: audited, Job: job, Digest: g.Digest, Run: run, Passed: passed}
		if told != "" {
			f.kind, f.Passed, f.Told = off, false, told
		}
		return tx.Add(f)
	})
}
