// Package gateway keeps a bot connected to Discord's gateway and hands its events over, in order, one at a time. A connection that
// ends in any way is replaced by one that resumes the session, so that Discord sends the events that were missed; a session that
// Discord no longer knows is replaced by a new one, after whose READY event the caller reads the channels' history.
//
// The connection is our own, because a lost message is the one fault that a listener must not have; events are raw JSON with a
// tolerant [api.Decode], so that a field or component that is newer than this program costs nothing but itself.
//
// Liveness. Every wait for the server has an end: [Options.Patience] for the address, the connection, HELLO, and the first event
// after IDENTIFY or RESUME; after that a heartbeat that is not acknowledged before the next one is due. Timers use the monotonic
// clock. A connection is never closed with 1000 or 1001, not even at the end of [Run]: these two codes end the session, and the
// events until the next start could not be had again by resuming.
//
// Delivery. Up to 1,024 events wait for the handler. While that many wait, nothing more is read, so that TCP holds the server back;
// heartbeats go on, and their acknowledgements, which cannot be read, are not missed. [Saved] names the last event that was handled,
// not the last that arrived: after a crash, events that were not handled, and those that were handled but not saved, come again. The
// handler must know by id what it has handled.
//
// New sessions. Discord resets the token of a bot that begins 1,000 sessions in a day. Run begins at most 20 in a burst and one every
// three minutes in the long run (500 a day), counted in Saved across restarts, and none while Discord's own count is used up.
package gateway

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/discord/api"
)

// Options say who connects, and how it is reported. Those from Sleep on may be left out.
type Options struct {
	Token   string
	Intents int
	REST    *api.Client // asks for the gateway's address
	Saved   Saved       // of the run before; the zero value begins a session

	Save func(Saved) // called from one goroutine at a time: after events, before a session begins, and at the end
	Beat func()      // called when a heartbeat of a working session is acknowledged
	Log  func(error) // why a connection ended or failed, and when the next one is tried

	Now      func() time.Time                           // only counts new sessions
	Sleep    func(context.Context, time.Duration) error // nil is the system's
	Random   func() float64                             // in [0, 1), for jitter; nil is the system's
	Patience time.Duration                              // for an answer of the server; 0 is 20 s
}

// Saved is what a later run needs to resume the session.
type Saved struct {
	ID      string    `json:"session_id,omitempty"`
	Resume  string    `json:"resume_url,omitempty"`
	Seq     int       `json:"seq,omitempty"`     // of the last event that was handled
	Intents int       `json:"intents,omitempty"` // of the session; a run with others begins a new one
	Quota   time.Time `json:"quota,omitzero"`    // when the allowance of new sessions is full again
}

// Event is one event of Discord's: its name, such as MESSAGE_CREATE, and its data as it arrived.
type Event struct {
	Type string
	Data json.RawMessage
	Seq  int
}

const (
	waiting   = 1024 // events that may wait for the handler
	saveEvery = 100  // events, while more are waiting
)

// Run stays connected and calls handle with every event, one at a time, until ctx ends, which returns nil. READY and RESUMED are
// events too. It returns an error only if another attempt would fail too: one that wraps api.ErrToken, ErrIntents or ErrRefused. An event
// is handled when handle returns, and Run waits for that. Events that still wait when Run ends come again at the next run.
func Run(ctx context.Context, o Options, handle func(Event)) error {
	r := newRun(o)
	ctx, cancel := context.WithCancel(ctx)
	var handler sync.WaitGroup
	handler.Go(func() { r.handle(ctx, handle) })
	err := r.loop(ctx)
	cancel()
	handler.Wait()
	r.save(nil)
	if fatal(err) {
		return err
	}
	return nil
}

// run is the state of one Run. All but saved belongs to the goroutine of loop.
type run struct {
	Options
	queue chan item

	session    session
	seq        int       // of the last event of session that is in the queue
	identified time.Time // when a session was last begun
	failed     int       // attempts in a row without a connection that held
	missed     int       // attempts in a row without READY or RESUMED
	unanswered int       // RESUMEs in a row without RESUMED

	mu    sync.Mutex
	saved Saved
}

// session is what can be resumed; the zero value is none.
type session struct{ id, resume string }

// item is an event in the queue.
type item struct {
	Event
	session session
}

func newRun(o Options) *run {
	if o.Sleep == nil {
		o.Sleep = process.Sleep
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Patience == 0 {
		o.Patience = 20 * time.Second
	}
	r := &run{Options: o, queue: make(chan item, waiting), saved: o.Saved}
	if o.Saved.Intents == o.Intents {
		r.session, r.seq = session{o.Saved.ID, o.Saved.Resume}, o.Saved.Seq
	}
	return r
}

// handle hands over what is in the queue.
func (r *run) handle(ctx context.Context, handle func(Event)) {
	unsaved := 0
	for {
		select {
		case <-ctx.Done():
			return
		case i := <-r.queue:
			if ctx.Err() != nil {
				return
			}
			handle(i.Event)
			r.mu.Lock()
			r.saved.ID, r.saved.Resume, r.saved.Seq, r.saved.Intents = i.session.id, i.session.resume, i.Seq, r.Intents
			r.mu.Unlock()
			if unsaved++; unsaved >= saveEvery || len(r.queue) == 0 {
				r.save(nil)
				unsaved = 0
			}
		}
	}
}

// save changes what is saved, and saves it.
func (r *run) save(change func(*Saved)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if change != nil {
		change(&r.saved)
	}
	r.Save(r.saved)
}
