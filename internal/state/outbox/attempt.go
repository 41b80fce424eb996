package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
)

// patience is how many times an entry may fail before it no longer holds up later ones.
const patience = 5

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
		if receipt.Fate == Queued {
			return fmt.Errorf("an earlier message waits: %w", receipt.Reason)
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
	return p.attempt(ctx, e, p.ways())
}

// attempt tries once every carrier that has not finished the message, and records the result. The caller holds the entry.
func (p Post) attempt(ctx context.Context, e entry, ways []Carrier) (Receipt, error) {
	r := Receipt{Fate: Refused}
	var failed, refused []error
	for _, way := range ways {
		fate, err := p.carry(ctx, &e, way, len(ways) > 1)
		switch fate {
		case Queued:
			failed = append(failed, cmp.Or(err, errNoReason))
		case Refused:
			refused = append(refused, cmp.Or(err, errNoReason))
		case Sent:
			r.Fate = Sent
		}
		r.Outside = append(r.Outside, e.trips[way.Name()].parts...)
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

// carry tries one carrier. If others is set, it records that the carrier has finished the message.
func (p Post) carry(ctx context.Context, e *entry, way Carrier, others bool) (Fate, error) {
	before := e.trips[way.Name()]
	if before.fate != "" {
		return before.fate, nil
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
	if fate != Queued && others {
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
