package update

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
)

// Names of files of earlier versions in state/.
const (
	formerArchive = "updates.jsonl"
	formerClaims  = "pending_updates.claim"
)

// Former lists the names of the files of earlier versions in state/.
func Former() []string { return []string{formerArchive, formerClaims} }

// The suffix of a claim's file gave its state.
const (
	wasInUse     = ".json"
	wasDelivered = ".done" // its updates may be in the archive
	wasRestored  = ".back" // the queue must hold exactly its updates, and there is no claim of that name
)

// formerLine is a line of the archive.
type formerLine struct {
	Update
	Became string    `json:"became"`
	At     time.Time `json:"at"`
	To     string    `json:"to"`
}

// formerClaim is the file of a claim.
type formerClaim struct {
	Run     string  `json:"run"`
	Lock    string  `json:"lock"`
	Cleared bool    `json:"cleared"`
	Updates []entry `json:"updates"`
}

// importer takes over the files of an earlier version.
type importer struct {
	Box
	tx        *ledger.Tx
	reporters map[string]string // by the id of an update whose fate is not known yet
	delivered map[string]bool   // ids of the updates in claims that were delivered; false: not in the archive
	any       bool              // there are facts
}

// Import adds the facts of the files of an earlier version. A claim in use stays a claim; the next change returns the claim of a person.
func (b Box) Import(tx *ledger.Tx) error {
	i := importer{b, tx, map[string]string{}, map[string]bool{}, false}
	claims, err := i.claims()
	if err != nil {
		return err
	}
	for _, c := range claims[wasDelivered] {
		for _, u := range b.pendingOf(c.Updates).list(time.UTC) {
			i.delivered[u.ID()] = false
		}
	}
	for line, err := range store.Lines[formerLine](b.Home.State(formerArchive), nil) {
		if err == nil {
			err = i.line(line)
		}
		if err != nil {
			return err
		}
	}
	for _, c := range claims[wasDelivered] {
		p := i.known(b.pendingOf(c.Updates))
		if p.Omitted > 0 && i.delivered[p.sentinel().ID()] {
			p.Omitted = 0
		}
		p.Updates = slices.DeleteFunc(p.Updates, func(u Update) bool { return i.delivered[u.ID()] })
		if p.empty() {
			continue
		}
		i.any = true
		if err := tx.Add(fateOf(c, p)); err != nil {
			return err
		}
	}
	return i.pending(claims)
}

// claims reads the files of claims by their state, the oldest first. It skips a file that cannot be parsed.
func (i *importer) claims() (map[string][]formerClaim, error) {
	folder := i.Home.State(formerClaims)
	list, err := store.List(folder)
	if err != nil {
		return nil, err
	}
	claims, restored := map[string][]formerClaim{}, map[string]bool{}
	for _, f := range list { // in the order of their names, .back before .json
		suffix := filepath.Ext(f.Name())
		name := strings.TrimSuffix(f.Name(), suffix)
		text, err := store.Read(filepath.Join(folder, f.Name()))
		var c formerClaim
		if err != nil || json.Unmarshal(text, &c) != nil || len(c.Updates) == 0 || suffix == wasInUse && restored[name] {
			continue
		}
		restored[name] = suffix == wasRestored
		claims[suffix] = append(claims[suffix], c)
	}
	return claims, nil
}

// line adds the fact of a line of the archive.
func (i *importer) line(l formerLine) error {
	id := l.ID()
	if l.By != "" {
		i.reporters[id] = l.By
	}
	p := pending{Updates: []Update{{l.TS.UTC(), l.Message, i.reporters[id]}}}
	if n, ok := sentinelCount(l.Message); ok {
		p = pending{Omitted: n, Since: l.TS.UTC()}
	}
	var f ledger.Fact
	switch l.Became {
	case becameUsed:
		f = used{"", l.To, p}
	case becameCleared:
		f = cleared{l.To, p}
	case becameDropped:
		f = dropped{p.Updates}
	default:
		return nil
	}
	i.any = true
	delete(i.reporters, id)
	if _, waits := i.delivered[id]; waits && l.Became != becameDropped {
		i.delivered[id] = true
	}
	return i.tx.AddAt(l.At, f)
}

// known adds the reporters of updates.
func (i *importer) known(p pending) pending {
	for k, u := range p.Updates {
		p.Updates[k].By = i.reporters[u.ID()]
	}
	return p
}

// fateOf returns what became of a claim that was delivered.
func fateOf(c formerClaim, p pending) ledger.Fact {
	if c.Cleared {
		return cleared{c.Run, p}
	}
	return used{"", c.Run, p}
}

// pending adds the claims in use and the queue. The updates to which the queue is to be restored become a claim that is returned.
func (i *importer) pending(claims map[string][]formerClaim) error {
	inUse := claims[wasInUse]
	file, invalid, err := store.PeekJSON[[]entry](i.Home.PendingUpdates())
	if err != nil || invalid != nil {
		file = nil // the next change reports it
	}
	for _, c := range claims[wasRestored] {
		inUse, file = append(inUse, formerClaim{Updates: c.Updates}), nil
	}
	for n, c := range inUse {
		if c.Cleared {
			c.Run = ""
		}
		name := "former-" + strconv.Itoa(n+1)
		if err := i.tx.Add(found{i.known(i.pendingOf(c.Updates))}, taken{name, c.Run, c.Lock}); err != nil {
			return err
		}
	}
	if i.any || len(inUse) > 0 || len(i.reporters) > 0 {
		return i.tx.Add(found{i.known(i.pendingOf(file))})
	}
	return nil
}
