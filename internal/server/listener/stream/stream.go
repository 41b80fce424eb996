// Package stream shows the answers of turns in a messenger while they arrive.
package stream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Stream shows the answers of turns while they arrive.
//
// The owner's message gets a reaction, and a reply with a line about what the agent does. The reply is edited as the answer
// arrives, and goes on in further messages. When the turn has ended, the messages are made to say the whole answer, with a line
// about anything that went wrong, and the reaction is removed. Where messages cannot be edited, the answer is sent when the turn has
// ended.
type Stream struct {
	API messenger.Writer
	Now func() time.Time

	// Left receives the part of an answer that could not be shown, for the outbox.
	Left func(ctx context.Context, o messenger.Outgoing) error

	// Showing is called with the ids of the messages that show the answer, whenever there is another one; may be nil. What it
	// returns is passed on by Show.
	Showing func(messages []string) error
}

// Times of a stream.
const (
	Patience  = 5 * time.Minute  // of requests that complete an answer
	hurry     = 10 * time.Second // replaces what is left of the Patience when the process is stopped
	grace     = 3 * time.Second  // for a request that is under way when the turn ends
	typingFor = 8 * time.Second  // messengers show it for ten
	longTurn  = time.Minute      // a longer one ends with a new message, because an edit notifies nobody
)

// Working is the reaction to a message that is being answered.
const Working = "👀"

// Source is the message that a turn answers.
type Source struct {
	Channel string
	Message string // its id; "" if the turn answers no message
	Place   queue.Place
}

// Shown is what became of an answer.
type Shown struct {
	Messages []string // ids of the messages that show it, in order
	Left     bool     // the rest was given to Stream.Left
}

// Show shows the answer of turn, which it calls once. It returns when the answer is shown or given to Left, which failed if there is
// an error. If turn panics, the answer ends with a line about that first. The end of ctx means that the process is stopped: turn
// must return soon, and the end of the answer is shown in a few seconds or not at all.
func (s Stream) Show(ctx context.Context, at Source, turn func(*Answer) (runlog.Record, error)) (shown Shown, err error) {
	a := s.begin(ctx, at)
	record, failed := runlog.Record{}, errInternal
	defer func() { shown, err = a.end(ctx, record, failed) }()
	record, failed = turn(a)
	return
}

// ErrDeleted is the error of a turn that has not begun because its message was deleted: nothing is shown.
var ErrDeleted = errors.New("the message was deleted")

var errInternal = errors.New("an internal error: see the log of ollim")

// Answer is the answer of one turn while it is shown.
type Answer struct {
	stream Stream
	able   messenger.Able
	at     Source

	mu      sync.Mutex
	content content
	buttons []outbox.Button

	posted  posted        // belongs to the goroutine that posts, then to end
	changed chan struct{} // there may be more to show
	placed  chan struct{} // closed when the first message is there, or could not be sent

	running sync.WaitGroup
	stop    func() // ends what goes on while the turn does
	cancel  func() // ends the requests that are under way then
}

func (s Stream) begin(ctx context.Context, at Source) *Answer {
	request, cancel := context.WithCancel(context.WithoutCancel(ctx))
	live, stop := context.WithCancel(request)
	able := s.API.Able()
	a := &Answer{
		stream: s, able: able, at: at, content: newContent(able, s.Now()), posted: posted{able: able}, changed: make(chan struct{}, 1), placed: make(chan struct{}),
		stop: stop, cancel: cancel,
	}
	if at.Place.Ahead > 0 { // before anything is shown
		a.content.wait(at.Place.String(), s.Now())
	}
	a.running.Go(func() { a.acknowledge(request) })
	a.running.Go(func() { a.post(live, request) })
	a.running.Go(func() { a.typing(live) })
	return a
}

// Observer returns functions that show what they are given.
func (a *Answer) Observer() run.Observer {
	return run.Observer{
		Event: func(e runlog.Event) { a.change(func(c *content) { c.hear(e, a.stream.Now()) }) },
		Text: func(text string) error {
			a.change(func(c *content) { c.say(text, a.stream.Now()) })
			return nil
		},
	}
}

// Note adds a line about the turn to the answer. Nothing in it is formatted.
func (a *Answer) Note(line string) { a.change(func(c *content) { c.note(line) }) }

// SetButtons sets the buttons of the last message. They appear when the answer is complete.
func (a *Answer) SetButtons(list []outbox.Button) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.buttons = list
}

func (a *Answer) change(what func(*content)) {
	a.mu.Lock()
	what(&a.content)
	a.mu.Unlock()
	select {
	case a.changed <- struct{}{}:
	default: // known already
	}
}

func (a *Answer) acknowledge(ctx context.Context) {
	if a.able.Reactions && a.at.Message != "" {
		_ = a.stream.API.React(ctx, a.at.Channel, a.at.Message, Working) // the reply says the same
	}
}

func (a *Answer) typing(ctx context.Context) {
	select {
	case <-a.placed: // a new message ends it
	case <-ctx.Done():
		return
	}
	refresh := time.NewTicker(typingFor)
	defer refresh.Stop()
	for {
		a.mu.Lock()
		opened, queued := a.content.opened, a.content.queued
		a.mu.Unlock()
		if opened || ctx.Err() != nil {
			return
		}
		if !queued {
			_ = a.stream.API.Typing(ctx, a.at.Channel) // the answer says the same
		}
		select {
		case <-refresh.C:
		case <-ctx.Done():
			return
		}
	}
}

// end completes what is shown and removes what shows that the agent works.
func (a *Answer) end(ctx context.Context, record runlog.Record, failed error) (Shown, error) {
	a.stop()
	impatient := time.AfterFunc(grace, a.cancel)
	a.running.Wait()
	impatient.Stop()
	a.cancel()

	last, cancel := Patient(ctx, Patience)
	defer cancel()
	if errors.Is(failed, ErrDeleted) {
		for _, m := range a.posted.list {
			a.remove(last, m.id)
		}
		return Shown{}, a.posted.unnoted
	}
	a.mu.Lock()
	a.content.conclude(record, failed)
	whole := messenger.Outgoing{Text: a.content.text(), ReplyTo: a.at.Message, Buttons: a.buttons}
	a.mu.Unlock()
	rest, left := a.complete(last, whole)
	done := Shown{Messages: a.posted.ids(), Left: left}
	err := a.posted.unnoted
	if left {
		err = errors.Join(err, a.stream.Left(context.WithoutCancel(ctx), rest))
	}
	a.withdraw(ctx)
	return done, err
}

// showing calls Stream.Showing. more are messages that are about to be deleted.
func (a *Answer) showing(more ...string) {
	if a.stream.Showing != nil {
		a.posted.unnoted = errors.Join(a.posted.unnoted, a.stream.Showing(append(a.posted.ids(), more...)))
	}
}

func (a *Answer) withdraw(ctx context.Context) {
	if !a.able.Reactions || a.at.Message == "" {
		return
	}
	ctx, cancel := Patient(ctx, Patience)
	defer cancel()
	_ = Insist(ctx, func() error { return a.stream.API.Unreact(ctx, a.at.Channel, a.at.Message, Working) })
}

// Patient returns a context that ends after a time, or a few seconds after ctx.
func Patient(ctx context.Context, most time.Duration) (context.Context, func()) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(hurry, cancel) })
	return last, func() {
		stop()
		cancel()
	}
}

// Insist calls do until it succeeds, fails for good or ctx ends.
func Insist(ctx context.Context, do func() error) error {
	for pause := time.Second; ; pause = min(2*pause, 15*time.Second) {
		err := do()
		if err == nil || messenger.IsPermanent(err) || messenger.After(err) > time.Minute || process.Sleep(ctx, max(pause, messenger.After(err))) != nil {
			return err
		}
	}
}
