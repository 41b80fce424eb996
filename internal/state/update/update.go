// Package update is the queue of messages for the main session. Add appends a message, Peek reads the queue, and Pop takes all
// messages in two phases: they stay on disk as a claim until Deliver marks them as used or Return puts them back. The claim of
// a dead process is returned to the queue, or counts as delivered if its run had begun to answer. Each update is therefore
// used exactly once and none is lost, wherever a process is killed, except that an owner without a run may use one before it can call
// Deliver: the updates of a claim that it leaves are given out again.
//
// The queue holds at most ten entries; beyond that the oldest are dropped, and a sentinel in front counts them. An archive
// records what became of every update. An update is identified by its ts and message, which no two ever share.
//
// On disk: state/pending_updates.json is an array of {ts, message}, absent when empty. The directory pending_updates.claim holds,
// per claim, NAME.json (in use), NAME.done (delivered, not yet archived) or NAME.back (the queue must contain exactly this).
// state/updates.jsonl is the archive. All three are changed under the one lock "pending_updates" only.
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
}

// idDigits is the length of an ID.
const idDigits = 12

// ID identifies the update wherever it is shown. One that was taken and returned to the queue keeps it, so whoever is given an update
// twice can tell.
func (u Update) ID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s", u.TS.UnixMicro(), u.Message))
	return hex.EncodeToString(sum[:])[:idDigits]
}

// Box is the queue of one data directory. A failed change wraps *store.NotWritten or *lock.Failed and has left
// everything as it was; a lock that stayed taken for ten seconds wraps lock.ErrBusy. Updates that were delivered or
// cleared stay so even if the archive cannot be written: the next operation writes it.
type Box struct {
	Home paths.Dir
	Disk store.Disk
	Zone *time.Location // the configured zone; never nil
	// Started reports whether the model has answered anything in a killed run, so that the updates which the run took
	// count as delivered. It is called under the queue's lock and must not use the Box. Nil stands for a function that
	// returns false.
	Started func(runID string) bool
}

// Add appends a message to the queue, cleaned of control characters and cut to MaxChars. The archive records the
// reporter: by is a run's id or "owner". Add returns ErrEmpty if no text is left of the message.
func (b Box) Add(ctx context.Context, message, by string) error {
	text := Clean(message)
	if text == "" {
		return ErrEmpty
	}
	o, err := b.open(ctx, Owner{}, "")
	if err != nil {
		return err
	}
	defer o.close()
	ts, err := o.nextTS()
	if err != nil {
		return err
	}
	u := Update{ts, text}
	p := o.pending
	p.real = append(slices.Clip(p.real), u)
	// After a crash between the archive and the queue, dropped updates are in both, and the archive is read so that the later fate
	// of an update counts.
	if err := o.drop(&p); err != nil {
		return err
	}
	if err := o.write(p); err != nil {
		return err
	}
	note := fate{Update: u, Became: becameAdded, At: o.now, By: by}
	if err := o.archive([]fate{note}, store.Buffered); err != nil { // the update itself is safe
		o.Disk.Warn(fmt.Sprintf("the reporter of an update was not recorded: %v", err))
	}
	return nil
}

// Peek returns the queue, the sentinel first. It writes only if a dead claim must be returned; without claims it works
// on a read-only file system.
func (b Box) Peek(ctx context.Context) ([]Update, error) {
	if list, ok := b.glance(); ok {
		return list, nil
	}
	o, err := b.open(ctx, Owner{}, "")
	if err != nil {
		return nil, err
	}
	defer o.close()
	return o.pending.list(), nil
}

// glance reads without the lock, which is correct while there are no claims, because the array is replaced as a whole.
// A file that cannot be parsed is left to a reader that holds the lock.
func (b Box) glance() ([]Update, bool) {
	if files, err := b.claimFiles(); err != nil || len(files) > 0 {
		return nil, false
	}
	entries, invalid, err := store.PeekJSON[[]entry](b.Home.PendingUpdates())
	if err != nil || invalid != nil {
		return nil, false
	}
	return b.pendingOf(entries).list(), true
}

// Clear drops all queued updates, archived as cleared by a run or "owner", and returns their number without those that
// the sentinel counts.
func (b Box) Clear(ctx context.Context, by string) (int, error) {
	o, err := b.open(ctx, Owner{}, "")
	if err != nil {
		return 0, err
	}
	defer o.close()
	n := len(o.pending.real)
	if o.pending.empty() {
		return 0, nil
	}
	// Clear makes a claim and delivers it at once, so that the archive and the queue agree wherever the process is
	// killed.
	name, held, err := o.take(claimFile{Run: by, Cleared: true})
	if err != nil {
		return 0, err
	}
	defer held.Release()
	return n, o.deliver(name)
}

// opened is the queue under its lock, after recovery.
type opened struct {
	Box
	close   func()
	now     time.Time
	pending pending
	claimed time.Time // the latest ts in a claim that is in use
}

// open takes the lock and recovers the queue. owner is the caller; mine names its own claim, if any, which is left
// alone.
func (b Box) open(ctx context.Context, owner Owner, mine string) (*opened, error) {
	held, err := b.Disk.Lock(ctx, b.Home.Lock("pending_updates"))
	if err != nil {
		return nil, err
	}
	o := &opened{Box: b, close: held.Release, now: b.Disk.Now().In(b.Zone).Truncate(time.Microsecond)}
	if err := o.recover(owner, mine); err != nil {
		held.Release()
		return nil, err
	}
	return o, nil
}

// nextTS returns the ts of a new update: later than every queued or claimed one, and never used before. It reads more
// than the end of the archive only if the clock stands still or was set back.
func (o *opened) nextTS() (time.Time, error) {
	ts := o.now
	if newest := latest(o.claimed, o.pending.newest()); !ts.After(newest) {
		ts = newest.Add(time.Microsecond)
	}
	high, err := o.highWater()
	if err != nil || ts.After(high) {
		return ts, err
	}
	used, err := o.stampsSince(ts)
	if err != nil {
		return ts, err
	}
	for used[ts.UnixMicro()] {
		ts = ts.Add(time.Microsecond)
	}
	return ts, nil
}

// drop applies the cap to a queue, and archives what it drops.
func (o *opened) drop(p *pending) error {
	return o.archive(o.fates(p.limit(), becameDropped, ""), store.Synced)
}
