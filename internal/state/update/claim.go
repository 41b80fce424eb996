package update

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
)

// Owner identifies the caller of Pop.
type Owner struct {
	Run string // run id, "" for a person
	// Lock is the absolute path of the session lock that the run holds from before Pop until its end; the claim is dead
	// once that lock is free. If "", the claim lives until this process ends.
	Lock string
}

// Claim holds updates that have been taken out of the queue and are not used yet. It is safe for concurrent use.
type Claim struct {
	Updates []Update // the sentinel first, if there is one

	box      Box
	owner    Owner
	name     string     // of its file; "" if the queue was empty
	held     *lock.Held // on its file, if the owner has no lock
	mu       sync.Mutex
	settled  bool
	returned bool // settled by Return
}

// Pop takes all updates out of the queue. The caller calls Deliver as soon as the updates have been used, or Return if
// they will not be used. If it dies before that, the next operation on the queue settles the claim. If the queue is
// empty, the claim is empty and has no file.
func (b Box) Pop(ctx context.Context, owner Owner) (*Claim, error) {
	o, err := b.open(ctx, owner, "")
	if err != nil {
		return nil, err
	}
	defer o.close()
	c := &Claim{Updates: o.pending.list(), box: b, owner: owner}
	if o.pending.empty() {
		return c, nil
	}
	c.name, c.held, err = o.take(claimFile{Run: owner.Run, Lock: owner.Lock})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Deliver marks the updates as used: they are archived as popped. A second call does nothing. It fails if the updates
// were returned earlier, by this claim or because its owner appeared dead. It works after ctx has ended, because a
// claim must be settled then too; the wait for the queue's lock bounds it.
func (c *Claim) Deliver(ctx context.Context) error {
	return c.settle(ctx, false, func(o *opened, found bool) error {
		if found {
			return o.deliver(c.name)
		}
		unused, err := o.notArchived(o.fates(c.Updates, becamePopped, ""))
		if err == nil && len(unused) > 0 {
			err = errReturned
		}
		return err
	})
}

// Return marks the updates as not used: they go back into the queue in the order of their ts, and the cap is applied
// again. A second call does nothing, nor does a call after Deliver. It works after ctx has ended.
func (c *Claim) Return(ctx context.Context) error {
	return c.settle(ctx, true, func(o *opened, found bool) error {
		if found {
			return o.giveBack(c.name)
		}
		return nil
	})
}

// settle runs act on the claim's file, once. The presence of that file under the lock decides the state of the claim.
func (c *Claim) settle(ctx context.Context, back bool, act func(o *opened, found bool) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.settled && c.returned && !back:
		return errReturned
	case c.settled, c.name == "":
		return nil
	}
	o, err := c.box.open(context.WithoutCancel(ctx), c.owner, c.name)
	if err != nil {
		return err
	}
	defer o.close()
	found, err := exists(o.claimPath(c.name, inUse))
	if err != nil {
		return err
	}
	if err := act(o, found); err != nil {
		return err
	}
	c.settled, c.returned = true, back
	c.held.Release()
	return nil
}

// claimFile is a claim on disk.
type claimFile struct {
	Run     string  `json:"run,omitempty"`
	Lock    string  `json:"lock,omitempty"`
	At      string  `json:"at"`
	Cleared bool    `json:"cleared,omitempty"` // not popped: Run, or the owner, throws the updates away
	Updates []entry `json:"updates"`
}

// The suffix of a claim's file gives its state.
const (
	inUse = ".json" // in use, or its owner died
	done  = ".done" // delivered: archive its updates, then remove it
	back  = ".back" // the box must hold exactly its updates, and there is no claim of that name
)

func (b Box) claimPath(name, suffix string) string {
	return filepath.Join(b.Home.UpdateClaims(), name+suffix)
}

// take moves the whole queue into a claim. Until the final rename the file says that the queue must be restored, so a
// crash before it leaves the queue unchanged and a crash after it leaves a claim of a dead owner.
func (o *opened) take(doc claimFile) (name string, held *lock.Held, err error) {
	name = o.now.UTC().Format("20060102T150405.000000Z") + "-" + rand.Text()[:8]
	doc.At, doc.Updates = stamp(o.now), entriesOf(o.pending)
	if err := o.writeClaim(name, back, doc); err != nil {
		return "", nil, err
	}
	err = store.Remove(o.Home.PendingUpdates())
	if err == nil && doc.Lock == "" {
		held, err = lock.Try(o.claimPath(name, back))
	}
	if err == nil {
		err = o.move(name, back, inUse)
	}
	if err != nil {
		held.Release()
		return "", nil, errors.Join(err, o.restore(name, o.pending))
	}
	o.pending = pending{}
	return name, held, nil
}

// deliver finishes a claim permanently. The rename decides; finish does the rest.
func (o *opened) deliver(name string) error {
	if err := o.move(name, inUse, done); err != nil {
		return err
	}
	return o.finish(name, false)
}

// giveBack puts the updates of a claim back into the queue. Nothing has changed until the new file exists; from then on
// the queue must hold its content.
func (o *opened) giveBack(name string) error {
	doc, err := store.ReadJSON[claimFile](o.Disk, o.claimPath(name, inUse))
	if err != nil {
		return err
	}
	p := o.pending.merged(o.pendingOf(doc.Updates))
	if err := o.drop(&p); err != nil {
		return err
	}
	if err := o.writeClaim(name, back, claimFile{At: stamp(o.now), Updates: entriesOf(p)}); err != nil {
		return err
	}
	return o.restore(name, p)
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
