// Package update is the queue of messages for the main session. Add appends a message, Peek reads the queue, and Pop takes all messages in
// two phases: they are claimed until Deliver marks them as used or Return puts them back. The claim of a dead process is returned to the
// queue, or counts as delivered if its run had begun to answer. Each update is therefore used exactly once and none is lost if a process is
// killed. The exception is an owner without a run that is killed after using updates and before calling Deliver: they are given out again.
//
// The queue holds at most ten entries; beyond that the oldest are dropped, and a sentinel in front counts them. An update is identified
// by its ts and message, which no two ever share.
//
// In the ledger: update.added, dropped, taken, returned, used, cleared, and found, the queue as another program has left it in the file.
// That file, state/pending_updates.json, is a view of the queue: an array of {ts, message}, absent when empty.
package update

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
)

const (
	// maxEntries is the maximum number of entries in the queue, including the sentinel.
	maxEntries = 10
	// MaxChars is the maximum length of a message in characters (runes). A longer message is cut and ends in a marker.
	MaxChars = 4000
)

var (
	// ErrEmpty rejects a message without text.
	ErrEmpty = errors.New("empty update")
	// errReturned is the error of delivering a claim whose updates have gone back into the queue.
	errReturned = errors.New("the updates were returned to the queue")
)

// Update is one message. In the queue its TS is in the configured zone, to the microsecond.
type Update struct {
	TS      time.Time `json:"ts"`
	Message string    `json:"message"`
	By      string    `json:"by,omitempty"` // who reported it: a run id, "owner" or "ollim"; "" if unknown
}

// idDigits is the length of an ID.
const idDigits = 12

// ID identifies the update wherever it is shown. An update that was taken and returned to the queue keeps its id, so that a reader can
// detect a repetition.
func (u Update) ID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s", u.TS.UnixMicro(), u.Message))
	return hex.EncodeToString(sum[:])[:idDigits]
}

// Box is the queue of one data directory. For its errors see ledger.Ledger.Change; a change that failed has left everything as it was.
type Box struct {
	Ledger *ledger.Ledger
	Home   paths.Dir
	Disk   store.Disk
	Zone   *time.Location // the configured zone; never nil
	// Started reports whether the model has answered anything in a killed run, so that the updates which the run took
	// count as delivered. It is called under the lock of the ledger and must not use it. Nil stands for a function that
	// returns false.
	Started func(runID string) bool
}

// Add appends a message to the queue, cleaned of control characters and cut to MaxChars. by, the reporter, is a run's id, "owner" or
// "ollim". Add returns ErrEmpty if no text is left of the message.
func (b Box) Add(ctx context.Context, message, by string) error {
	if Clean(message) == "" {
		return ErrEmpty
	}
	return b.Ledger.Change(ctx, store.Synced, func(tx *ledger.Tx) error { return b.AddIn(tx, message, by) })
}

// AddIn is Add as a part of a change.
func (b Box) AddIn(tx *ledger.Tx, message, by string) error {
	u := Update{Message: Clean(message), By: by}
	if u.Message == "" {
		return ErrEmpty
	}
	return b.open(tx, Owner{}, "", func(o *opened) error {
		u.TS = o.nextTS(u.Message)
		return errors.Join(o.add(added{u}), o.limit())
	})
}

// Peek returns the queue, the sentinel first. It writes only if the claim of a dead owner must be settled, or the file be set aside.
func (b Box) Peek(ctx context.Context) (list []Update, err error) {
	settled := false
	err = b.Ledger.Read(func(v ledger.View) error {
		q, err := ledger.Of(v, Facts())
		if err != nil {
			return err
		}
		file, invalid, err := store.PeekJSON[[]entry](b.Home.PendingUpdates())
		now, _ := q.with(b.pendingOf(file))
		list = now.list(b.Zone)
		settled = invalid == nil && !slices.ContainsFunc(q.Claims, func(c claimed) bool { return c.dead(Owner{}) })
		return err
	})
	if err == nil && !settled {
		err = b.change(ctx, store.Synced, Owner{}, "", func(o *opened) error {
			list = o.queue.Pending.list(b.Zone)
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Clear drops all queued updates, for a run or "owner", and returns their number without those that the sentinel counts.
func (b Box) Clear(ctx context.Context, by string) (n int, err error) {
	err = b.change(ctx, store.Synced, Owner{}, "", func(o *opened) error {
		p := o.queue.Pending
		if n = len(p.Updates); p.empty() {
			return nil
		}
		return o.add(cleared{by, p})
	})
	return n, err
}

// opened is the queue during a change, after recovery.
type opened struct {
	Box
	tx    *ledger.Tx
	queue *Queue  // as it is with the facts added so far
	file  pending // what the file held at first
}

// change changes the ledger by one act on the queue.
func (b Box) change(ctx context.Context, d store.Durability, owner Owner, mine string, act func(o *opened) error) error {
	return b.Ledger.Change(ctx, d, func(tx *ledger.Tx) error { return b.open(tx, owner, mine, act) })
}

// open adds what another program has written, settles the claims of dead owners, calls act, and writes the result to the file. owner is the
// caller; mine names its own claim, if any, which is left alone.
func (b Box) open(tx *ledger.Tx, owner Owner, mine string, act func(o *opened) error) error {
	file, invalid, err := store.PeekJSON[[]entry](b.Home.PendingUpdates())
	if invalid != nil {
		_, err = store.ReadJSON[[]entry](b.Disk, b.Home.PendingUpdates()) // sets it aside
	}
	if err != nil {
		return err
	}
	o := &opened{Box: b, tx: tx, file: b.pendingOf(file)}
	if err = o.add(); err == nil && invalid == nil {
		err = o.adopt()
	}
	if err == nil {
		err = o.recover(owner, mine)
	}
	if err == nil {
		err = act(o)
	}
	if err == nil {
		err = o.show()
	}
	return err
}

// add adds facts to the change.
func (o *opened) add(facts ...ledger.Fact) (err error) {
	if err = o.tx.Add(facts...); err == nil {
		o.queue, err = ledger.Of(o.tx.View, Facts())
	}
	return err
}

// nextTS returns the ts of a new update: later than every queued or claimed one, and never used before with that message.
func (o *opened) nextTS(message string) time.Time {
	newest := o.queue.Pending.newest()
	for _, c := range o.queue.Claims {
		newest = latest(newest, c.Pending.newest())
	}
	ts := o.tx.At
	if !ts.After(newest) {
		ts = newest.Add(time.Microsecond)
	}
	for slices.Contains(o.queue.Gone, Update{TS: ts, Message: message}.ID()) {
		ts = ts.Add(time.Microsecond)
	}
	return ts
}

// limit applies the cap.
func (o *opened) limit() error {
	if over := o.queue.Pending.over(); len(over) > 0 {
		return o.add(dropped{over})
	}
	return nil
}

// recover settles the claims of dead owners, except the one named mine.
func (o *opened) recover(owner Owner, mine string) error {
	for _, c := range slices.Clone(o.queue.Claims) {
		if c.Name == mine || !c.dead(owner) {
			continue
		}
		settle := o.giveBack
		if c.Run != "" && o.Started != nil && o.Started(c.Run) {
			settle = o.deliver
		}
		if err := settle(c); err != nil {
			return err
		}
	}
	return nil
}

func (o *opened) deliver(c claimed) error { return o.add(used{c.Name, c.Run, c.Pending}) }

func (o *opened) giveBack(c claimed) error {
	return errors.Join(o.add(returned{c.Name}), o.limit())
}
