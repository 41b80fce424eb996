package update

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

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
	name     string // "" if the queue was empty
	at       time.Time
	held     *lock.Held // if the owner has no lock
	mu       sync.Mutex
	settled  bool
	returned bool // settled by Return
}

// Pop takes all updates out of the queue. The caller calls Deliver as soon as the updates have been used, or Return if
// they will not be used. If it dies before that, the next operation on the queue settles the claim. If the queue is
// empty, the claim is empty and nothing is written.
func (b Box) Pop(ctx context.Context, owner Owner) (*Claim, error) {
	d := store.Synced
	if owner.Run == "" {
		d = store.Buffered // a power failure ends the owner too, and the updates are pending again
	}
	c := &Claim{box: b, owner: owner}
	err := b.change(ctx, d, owner, "", c.take)
	if err != nil {
		c.held.Release()
		return nil, err
	}
	return c, nil
}

func (c *Claim) take(o *opened) (err error) {
	p := o.queue.Pending
	if p.empty() {
		return nil
	}
	path := c.owner.Lock
	if path == "" {
		if c.held, path, err = o.ownLock(); err != nil {
			return err
		}
	}
	c.Updates, c.at = p.list(o.Zone), o.tx.At
	c.name = o.tx.At.Format("20060102T150405.000000Z") + "-" + rand.Text()[:8]
	return o.add(taken{c.name, c.owner.Run, path})
}

// ownLock takes the first free lock of those that processes without a session lock hold for their claims.
func (o *opened) ownLock() (held *lock.Held, path string, err error) {
	for n := 1; ; n++ {
		path = o.Home.Lock(fmt.Sprint("updates-", n))
		if held, err = lock.Try(path); !errors.Is(err, lock.ErrBusy) {
			return held, path, err
		}
	}
}

// dead reports whether the owner of the claim has died. A caller that pops under the same session lock for another run
// proves it by holding that lock. The lock would look taken otherwise, and each new turn of a conversation would skip
// the claim.
func (c claimed) dead(owner Owner) bool {
	return c.Lock == "" || lock.Free(c.Lock) || c.Lock == owner.Lock && c.Run != owner.Run
}

// Deliver marks the updates as used. A second call does nothing. It fails if the updates were returned earlier, by this claim or because
// its owner appeared dead. It works after ctx has ended, because a claim must be settled then too; the wait for the lock bounds it.
func (c *Claim) Deliver(ctx context.Context) error {
	return c.settle(ctx, false, (*opened).deliver)
}

// Return marks the updates as not used: they go back into the queue in the order of their ts, and the cap is applied
// again. A second call does nothing, nor does a call after Deliver. It works after ctx has ended.
func (c *Claim) Return(ctx context.Context) error {
	return c.settle(ctx, true, (*opened).giveBack)
}

// settle ends the claim by act, once, unless another process has done so.
func (c *Claim) settle(ctx context.Context, back bool, act func(*opened, claimed) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.settled && c.returned && !back:
		return errReturned
	case c.settled, c.name == "":
		return nil
	}
	settled := true
	err := c.box.change(context.WithoutCancel(ctx), store.Synced, c.owner, c.name, func(o *opened) error {
		for _, mine := range o.queue.Claims {
			if mine.Name == c.name {
				return act(o, mine)
			}
		}
		settled = false
		return nil
	})
	if err == nil && !settled && !back {
		err = c.delivered()
	}
	if err != nil {
		return err
	}
	c.settled, c.returned = true, back
	c.held.Release()
	return nil
}

// delivered returns errReturned unless the claim is among those that were used.
func (c *Claim) delivered() error {
	for line, err := range c.box.Ledger.Newest(c.at.AddDate(0, 0, -1), used{}.Fact()) { // the clock may have been set back
		var f used
		if err == nil {
			err = line.Into(&f)
		}
		if err != nil || f.Claim == c.name {
			return err
		}
	}
	return errReturned
}

// The fates of an update.
const (
	becameUsed    = "popped"  // used: by the run fate.To, or by a person
	becameDropped = "dropped" // left out by the cap, and counted by a sentinel
	becameCleared = "cleared" // thrown away unread, by fate.To
)

// fate is how an update left the queue. A sentinel has a fate too when it is popped or cleared.
type fate struct {
	Update
	Became  string    // popped, dropped or cleared
	At      time.Time // when it left the queue
	To      string    // the run that consumed it, or who cleared it; "" for a person
	Omitted int       // of a sentinel: how many dropped updates it stood for
}

// Fates yields what became of every update that has left the queue since an instant, the oldest fate first.
func (b Box) Fates(since time.Time) iter.Seq2[fate, error] {
	became := map[string]string{used{}.Fact(): becameUsed, dropped{}.Fact(): becameDropped, cleared{}.Fact(): becameCleared}
	return func(yield func(fate, error) bool) {
		for line, err := range b.Ledger.Lines(since, used{}.Fact(), dropped{}.Fact(), cleared{}.Fact()) {
			var f used // the others have the same keys
			if err == nil {
				err = line.Into(&f)
			}
			if err != nil && !yield(fate{}, err) {
				return
			}
			for i, u := range f.list(b.Zone) {
				one := fate{Update: u, Became: became[line.Kind], At: line.At.In(b.Zone), To: f.To}
				if i == 0 {
					one.Omitted = f.Omitted
				}
				if !yield(one, nil) {
					return
				}
			}
		}
	}
}
