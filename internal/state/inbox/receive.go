package inbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
)

// Errors of an event that is not accepted.
var (
	// ErrConflict: an event with the same delivery id had another body.
	ErrConflict = errors.New("an event with the same id had another body")
	// ErrHookFull: as many entries of the hook wait as one hook can have.
	ErrHookFull = errors.New("too many events of this webhook wait")
	// ErrFull: as many entries wait as the inbox can have.
	ErrFull = errors.New("too many events wait")
)

// Bounds of what the receiver remembers.
const (
	memory  = 24 * time.Hour // of an event that may be sent again
	brief   = time.Minute    // of an event that may be sent again on purpose
	most    = 100_000        // events, of about 200 bytes each; after that the oldest are forgotten
	recheck = 100 * time.Millisecond
)

// Receiver adds entries. There is one in a data directory. Its methods may be called by many goroutines at once.
type Receiver struct {
	book  Book
	guard *lock.Guard

	mu      sync.Mutex
	events  map[digest]*event
	ages    []*event       // oldest first
	last    int64          // the highest number
	waiting map[string]int // by hook, the entries that wait; runs may have taken some of them since counted
	writing map[string]int // by hook, the entries that are being written
	counted time.Time
}

// event is an accepted event, or one that is being written. There are many, so it is small.
type event struct {
	run      string
	at       int64  // in nanoseconds since 1970
	delivery digest // zero: it has no id
	body     digest
	byBody   bool     // it is recognised by its body, too
	brief    bool     // it is recognised within a minute only
	writing  *writing // nil when it is on disk
}

// writing is the writing of an entry.
type writing struct {
	done chan struct{} // is closed when the entry is on disk or err is set
	err  error
}

// digest is half a SHA-256 sum, of the hook and the delivery id or body of an event.
type digest [sha256.Size / 2]byte

func digestOf(what, hook, value string) digest {
	sum := sha256.Sum256([]byte(what + "\x00" + hook + "\x00" + value))
	return digest(sum[:])
}

func eventOf(e Entry) *event {
	ev := &event{
		run: e.Run, at: e.Arrived.UnixNano(), body: digestOf("body", e.Hook, e.Hash), byBody: e.Delivery == "" || !e.Signed,
		brief: e.Brief(),
	}
	if e.Delivery != "" {
		ev.delivery = digestOf("delivery", e.Hook, e.Delivery)
	}
	return ev
}

// keys are what the event is recognised by, the delivery id first.
func (ev *event) keys() []digest {
	switch {
	case ev.delivery == digest{}:
		return []digest{ev.body}
	case ev.byBody:
		return []digest{ev.delivery, ev.body}
	}
	return []digest{ev.delivery}
}

// Receive begins to add entries. The error wraps lock.ErrBusy if another process does. Close ends it.
func (b Book) Receive() (*Receiver, error) {
	guard, err := lock.TryGuard(b.Home.Lock("inbox"))
	if err != nil {
		return nil, err
	}
	r := &Receiver{book: b, guard: guard, events: map[digest]*event{}, writing: map[string]int{}}
	if err := r.recall(); err != nil {
		guard.Release()
		return nil, err
	}
	return r, nil
}

// Close lets another process receive.
func (r *Receiver) Close() { r.guard.Release() }

// Add puts an event into the inbox and returns the id of its run, after the entry has reached the disk. For an event that was added
// before it returns the id of that run, and isNew is false. The error is ErrConflict, ErrHookFull, ErrFull, a *store.NotWritten, or the
// cause of the end of ctx; then the event is not in the inbox.
func (r *Receiver) Add(ctx context.Context, e Entry) (run string, isNew bool, err error) {
	for {
		ev, w, err := r.admit(&e)
		switch {
		case err != nil:
			return "", false, err
		case ev.run == e.Run: // it is a new one
			w.err = r.write(e)
			r.settle(e, ev)
			return ev.run, true, w.err
		case w == nil:
			return ev.run, false, nil
		}
		select {
		case <-w.done:
		case <-ctx.Done():
			return "", false, context.Cause(ctx)
		}
		if w.err == nil {
			return ev.run, false, nil
		}
	}
}

// admit returns the event that an entry is, and its writing, nil when that has ended. If the event is a new one, the entry has the id
// of its run, and the caller writes and settles it.
func (r *Receiver) admit(e *Entry) (*event, *writing, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.book.Disk.Now()
	r.forget(now)
	ev := eventOf(*e)
	for _, k := range ev.keys() {
		known := r.events[k]
		if known == nil || ev.brief && now.Sub(time.Unix(0, known.at)).Abs() >= brief {
			continue
		}
		if k == ev.delivery && known.body != ev.body {
			return nil, nil, ErrConflict
		}
		return known, known.writing, nil
	}
	if err := r.hasRoom(e.Hook, now); err != nil {
		return nil, nil, err
	}
	run, err := r.book.NewRun()
	if err != nil {
		return nil, nil, err
	}
	r.last = max(r.last+1, now.UnixMilli())
	e.Run, e.Number, e.Arrived = run, r.last, now.In(r.book.Zone)
	ev.run, ev.at, ev.writing = run, now.UnixNano(), &writing{done: make(chan struct{})}
	r.remember(ev)
	r.writing[e.Hook]++
	return ev, ev.writing, nil
}

// write puts an entry on disk.
func (r *Receiver) write(e Entry) error {
	path := r.book.path(e)
	err := store.WriteJSON(path, e, store.Synced)
	if err != nil {
		_ = os.Remove(path) // its directory may not have been synced
	}
	return err
}

// settle ends the wait of those who sent the same event.
func (r *Receiver) settle(e Entry, ev *event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing[e.Hook]--
	if ev.writing.err == nil {
		r.waiting[e.Hook]++
	} else {
		r.drop(ev)
		r.ages = slices.DeleteFunc(r.ages, func(other *event) bool { return other == ev }) // many failures must not crowd out the others
	}
	close(ev.writing.done)
	ev.writing = nil
}

func (r *Receiver) remember(ev *event) {
	for _, k := range ev.keys() {
		r.events[k] = ev
	}
	r.ages = append(r.ages, ev)
}

func (r *Receiver) drop(ev *event) {
	for _, k := range ev.keys() {
		if r.events[k] == ev {
			delete(r.events, k)
		}
	}
}

// forget drops the events that are too old, or too many.
func (r *Receiver) forget(now time.Time) {
	for len(r.ages) > 0 && (len(r.ages) > most || now.UnixNano()-r.ages[0].at >= int64(memory)) {
		r.drop(r.ages[0])
		r.ages = r.ages[1:]
	}
}

// hasRoom returns an error if the inbox has no room for another entry of a hook. Runs take entries out of it, so it is counted again
// before an event is rejected.
func (r *Receiver) hasRoom(hook string, now time.Time) error {
	full := func() error {
		total := 0
		for _, counts := range []map[string]int{r.waiting, r.writing} {
			for _, n := range counts {
				total += n
			}
		}
		switch l := r.book.Limits; {
		case r.waiting[hook]+r.writing[hook] >= l.Hook:
			return ErrHookFull
		case total >= l.All:
			return ErrFull
		}
		return nil
	}
	if full() == nil {
		return nil
	}
	if ago := now.Sub(r.counted); ago < 0 || ago >= recheck {
		if err := r.recount(); err != nil {
			return err
		}
		r.counted = now
	}
	return full()
}

// recount counts the entries on disk. One that is being written may be among them, and count twice until the next time.
func (r *Receiver) recount() error {
	hooks, err := r.book.Hooks()
	if err != nil {
		return err
	}
	r.waiting = map[string]int{}
	for _, hook := range hooks {
		names, err := r.book.names(hook)
		if err != nil {
			return err
		}
		r.waiting[hook] = len(names)
	}
	return nil
}

// recall reads what was accepted before.
func (r *Receiver) recall() error {
	if err := r.recount(); err != nil {
		return err
	}
	err := r.book.each(func(e Entry) {
		r.last = max(r.last, e.Number)
		r.remember(eventOf(e))
	})
	if err != nil { // the others are there
		r.book.Disk.Warn(err.Error())
	}
	runs, err := r.book.Runs(r.book.Disk.Now().Add(-memory))
	if err != nil {
		return err
	}
	for _, run := range runs {
		var e Entry
		data, err := store.Read(r.book.Home.RunEntry(run))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(data, &e)
		}
		if err != nil {
			r.book.Disk.Warn(fmt.Sprintf("%s: %v: the event is accepted once more if it is sent again", r.book.Home.RunEntry(run), err))
			continue
		}
		r.remember(eventOf(e))
	}
	slices.SortStableFunc(r.ages, func(a, b *event) int { return cmp.Compare(a.at, b.at) })
	return nil
}
