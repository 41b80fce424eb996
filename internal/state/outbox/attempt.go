package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
)

// patience is how many times an entry may fail before it no longer holds up later ones.
const patience = 5

// errBusy is the reason why a message waits for which there was no attempt.
var errBusy = errors.New("another process is sending an earlier message")

// sendEarlier tries the messages that were created before m, if they have to arrive first. The error says why one of them was not sent.
func (p Post) sendEarlier(ctx context.Context, m Message) error {
	if !p.ordered() {
		return nil
	}
	entries, err := p.entries()
	if err != nil {
		return err
	}
	limit := cmp.Or(p.Timeout, defaultTimeout) // for all of them: somebody waits for m
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("they are not all sent within %s", limit))
	defer cancel()
	wait := func(path string) (*lock.Guard, error) { return p.Disk.Locks.WaitGuard(ctx, path) } // another process may be sending it
	for _, e := range entries {
		if compare(e.Message, m) >= 0 {
			break
		}
		if e.Critical != m.Critical && len(p.Urgent) > 0 { // it goes another way
			continue
		}
		if e.broken != nil || e.done || e.Stuck || e.Attempts >= patience || e.held(p.Disk.Now()) {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("earlier messages wait: %w", context.Cause(ctx))
		}
		receipt, err := p.retry(ctx, e, wait)
		if err != nil {
			p.Disk.Warn(oneLine(err.Error()))
		}
		switch {
		case receipt.Fate == Queued:
			return fmt.Errorf("an earlier message waits: %w", receipt.Reason)
		case receipt.Fate == "" && err == nil && p.busy(e.ID):
			return errBusy
		}
	}
	return nil
}

// retry tries an entry again. It first reads the entry under the lock, because another process may have sent the message, or tried to.
func (p Post) retry(ctx context.Context, seen entry, take func(path string) (*lock.Guard, error)) (Receipt, error) {
	held, err := claim(p.path(seen.ID), take)
	if held == nil {
		return Receipt{}, err
	}
	defer held.Release()
	e := p.load(seen.ID)
	switch {
	case e.broken != nil:
		return Receipt{}, p.setAside(e)
	case e.done:
		return Receipt{}, store.Remove(p.path(e.ID))
	case e.Attempts != seen.Attempts, e.Stuck, !p.ordered() && !e.needsWork(p.Disk.Now()):
		return Receipt{Fate: Queued, Reason: errors.New(e.LastError)}, nil
	}
	return p.attempt(ctx, e, p.ways(e.Message))
}

// attempt tries once every carrier that has not finished the message, or those that the order of preference needs, and records the result.
// The caller holds the entry. Nothing is recorded if another process is to continue the attempt; then the reason wraps an *Elsewhere.
func (p Post) attempt(ctx context.Context, e entry, ways []Carrier) (Receipt, error) {
	now := p.Disk.Now()
	_ = os.Chtimes(p.path(e.ID), now, now) // see busy
	r := Receipt{Fate: Refused}
	var failed, refused []error
	var left error // an *Elsewhere
	prefers := p.prefers(e.Message)
	tries := 0
	for _, way := range e.inTurn(ways, prefers) {
		fate, err := p.carry(ctx, &e, way, len(ways) > 1 || prefers)
		begun := len(e.trips[way.Name()].parts) > 0
		r.Outside = append(r.Outside, e.trips[way.Name()].parts...)
		switch {
		case fate == Queued && elsewhere(err):
			left = err
		case fate == Queued:
			tries++
			failed = append(failed, cmp.Or(err, errNoReason))
		case fate == Refused:
			refused = append(refused, cmp.Or(err, errNoReason))
		default:
			r.Fate = Sent
		}
		if prefers && (fate == Sent || left != nil || fate == Queued && begun) {
			break
		}
	}
	switch {
	case prefers && r.Fate == Sent:
		failed = nil
	case left != nil && (prefers || len(failed) == 0):
		if tries > 0 {
			p.wake() // it is the other process's turn
		}
		return Receipt{Fate: Queued, Reason: left, Outside: r.Outside}, nil
	}
	if len(failed) > 0 {
		r.Fate, r.Reason = Queued, errors.Join(failed...)
		return r, p.note(e.ID, line{Error: cmp.Or(oneLine(r.Reason.Error()), errNoReason.Error())})
	}
	for _, reason := range refused {
		p.Disk.Warn("message " + e.ID + " was refused: " + oneLine(reason.Error()))
	}
	r.Reason = errors.Join(refused...)
	err := store.Remove(p.path(e.ID))
	if err != nil { // avoids sending it again every minute
		err = errors.Join(err, p.note(e.ID, line{}))
	}
	return r, err
}

var errNoReason = errors.New("no reason given")

// carry tries one carrier, unless it has failed in the same attempt. If others is set, it records what the carrier has come to.
func (p Post) carry(ctx context.Context, e *entry, way Carrier, others bool) (Fate, error) {
	before := e.trips[way.Name()]
	switch {
	case before.fate != "":
		return before.fate, nil
	case before.failed != "":
		return Queued, errors.New(before.failed)
	}
	limit := cmp.Or(p.Timeout, defaultTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no end within %s", limit))
	defer cancel()
	record := func(l line) {
		l.Carrier = way.Name()
		e.progress(l)
		if err := p.note(e.ID, l); err != nil {
			p.Disk.Warn(err.Error())
		}
	}
	fate, err := way.Carry(ctx, e.Message, before.parts, func(id string) {
		record(line{Part: id})
		if p.Received == nil {
			return
		}
		if err := p.Received(context.WithoutCancel(ctx), e.ID, id); err != nil {
			p.Disk.Warn(err.Error())
		}
	})
	if left, is := errors.AsType[*Elsewhere](err); is {
		if before.handed.IsZero() {
			record(line{Handed: true})
		}
		if now := p.Disk.Now(); before.handed.IsZero() || now.Sub(before.handed) < handTime && !now.Before(before.handed) {
			return Queued, err
		}
		err = left.overdue()
	}
	switch {
	case fate == Queued && others && p.prefers(e.Message):
		record(line{Error: cmp.Or(oneLine(cmp.Or(err, errNoReason).Error()), errNoReason.Error())})
	case fate != Queued && others:
		record(line{Fate: fate})
	}
	return fate, err
}

// print writes a message to the terminal. If the terminal is gone, the other carriers get the message.
func (p Post) print(_ context.Context, m Message) (Fate, error) {
	if _, err := io.WriteString(p.Terminal, body(m)); err != nil {
		return Queued, err
	}
	return Sent, nil
}
