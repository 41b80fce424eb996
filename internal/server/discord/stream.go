package discord

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
)

// messenger is the part of api.Client that shows answers.
type messenger interface {
	Send(ctx context.Context, channel string, o api.Outgoing) (*discordgo.Message, error)
	Edit(ctx context.Context, channel, id string, o api.Outgoing) (*discordgo.Message, error)
	Delete(ctx context.Context, channel, id string) error
	React(ctx context.Context, channel, id, emoji string) error
	Unreact(ctx context.Context, channel, id, emoji string) error
	Typing(ctx context.Context, channel string) error
}

// stream shows the answers of turns while they arrive.
//
// The owner's message gets a reaction, and a reply with a line about what the agent does. The reply is edited as the answer
// arrives, and goes on in further messages. When the turn has ended, the messages are made to say the whole answer, with a line
// about anything that went wrong, and the reaction is removed.
type stream struct {
	API messenger
	Now func() time.Time

	// Left receives the part of an answer that could not be shown, for the outbox.
	Left func(ctx context.Context, o api.Outgoing) error

	// Showing is called with the ids of the messages that show the answer, whenever there is another one; may be nil. What it
	// returns is passed on by show.
	Showing func(messages []string) error
}

// Times of a stream.
const (
	patience  = 5 * time.Minute
	hurry     = 10 * time.Second // replaces what is left of the patience when the process is stopped
	grace     = 3 * time.Second  // for a request that is under way when the turn ends
	typingFor = 8 * time.Second  // Discord shows it for ten
	longTurn  = time.Minute      // a longer one ends with a new message, because an edit notifies nobody
)

// working is the reaction to a message that is being answered.
const working = "👀"

// source is the message that a turn answers.
type source struct {
	Channel string
	Message string // its id; "" if the turn answers no message
}

// shown is what became of an answer.
type shown struct {
	Messages []string // ids of the messages that show it, in order
	Left     bool     // the rest was given to stream.Left
}

// show shows the answer of turn, which it calls once. It returns when the answer is shown or given to Left, which failed if there is
// an error. If turn panics, the answer ends with a line about that first. The end of ctx means that the process is stopped: turn
// must return soon, and the end of the answer is shown in a few seconds or not at all.
func (s stream) show(ctx context.Context, at source, turn func(*answer) (runlog.Record, error)) (shown shown, err error) {
	a := s.begin(ctx, at)
	record, failed := runlog.Record{}, errInternal
	defer func() { shown, err = a.end(ctx, record, failed) }()
	record, failed = turn(a)
	return
}

var errInternal = errors.New("an internal error: see the log of ollim")

// answer is the answer of one turn while it is shown.
type answer struct {
	stream stream
	at     source

	mu      sync.Mutex
	content content
	buttons []discordgo.MessageComponent

	posted  posted        // belongs to the goroutine that posts, then to end
	changed chan struct{} // there may be more to show
	placed  chan struct{} // closed when the first message is there, or could not be sent

	running sync.WaitGroup
	stop    func() // ends what goes on while the turn does
	cancel  func() // ends the requests that are under way then
}

func (s stream) begin(ctx context.Context, at source) *answer {
	request, cancel := context.WithCancel(context.WithoutCancel(ctx))
	live, stop := context.WithCancel(request)
	a := &answer{
		stream: s, at: at, content: newContent(s.Now()), changed: make(chan struct{}, 1), placed: make(chan struct{}),
		stop: stop, cancel: cancel,
	}
	a.running.Go(func() { a.acknowledge(request) })
	a.running.Go(func() { a.post(live, request) })
	a.running.Go(func() { a.typing(live) })
	return a
}

// observer returns functions that show what they are given.
func (a *answer) observer() run.Observer {
	return run.Observer{
		Event: func(e runlog.Event) { a.change(func(c *content) { c.hear(e, a.stream.Now()) }) },
		Text: func(text string) error {
			a.change(func(c *content) { c.say(text, a.stream.Now()) })
			return nil
		},
	}
}

// queued shows that other messages are answered first.
func (a *answer) queued(p queue.Place) {
	a.change(func(c *content) { c.wait(p.String(), a.stream.Now()) })
}

// note adds a line about the turn to the answer. Nothing in it is formatted.
func (a *answer) note(line string) { a.change(func(c *content) { c.note(line) }) }

// setButtons sets the components of the last message. They appear when the answer is complete.
func (a *answer) setButtons(list []discordgo.MessageComponent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.buttons = list
}

func (a *answer) change(what func(*content)) {
	a.mu.Lock()
	what(&a.content)
	a.mu.Unlock()
	select {
	case a.changed <- struct{}{}:
	default: // known already
	}
}

func (a *answer) acknowledge(ctx context.Context) {
	if a.at.Message != "" {
		_ = a.stream.API.React(ctx, a.at.Channel, a.at.Message, working) // the reply says the same
	}
}

func (a *answer) typing(ctx context.Context) {
	select {
	case <-a.placed: // Discord ends it at a new message
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
func (a *answer) end(ctx context.Context, record runlog.Record, failed error) (shown, error) {
	a.stop()
	impatient := time.AfterFunc(grace, a.cancel)
	a.running.Wait()
	impatient.Stop()
	a.cancel()

	last, cancel := patient(ctx, patience)
	defer cancel()
	a.mu.Lock()
	a.content.conclude(record, failed)
	whole := api.Outgoing{Text: a.content.text(), ReplyTo: a.at.Message, Components: a.buttons}
	a.mu.Unlock()
	rest, left := a.complete(last, whole)
	shown := shown{Messages: a.posted.ids(), Left: left}
	err := a.posted.unnoted
	if left {
		err = errors.Join(err, a.stream.Left(context.WithoutCancel(ctx), rest))
	}
	a.withdraw(ctx)
	return shown, err
}

// showing calls stream.Showing. more are messages that are about to be deleted.
func (a *answer) showing(more ...string) {
	if a.stream.Showing != nil {
		a.posted.unnoted = errors.Join(a.posted.unnoted, a.stream.Showing(append(a.posted.ids(), more...)))
	}
}

func (a *answer) withdraw(ctx context.Context) {
	if a.at.Message == "" {
		return
	}
	ctx, cancel := patient(ctx, patience)
	defer cancel()
	_ = insist(ctx, func() error { return a.stream.API.Unreact(ctx, a.at.Channel, a.at.Message, working) })
}

// patient returns a context that ends after a time, or a few seconds after ctx.
func patient(ctx context.Context, most time.Duration) (context.Context, func()) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(hurry, cancel) })
	return last, func() {
		stop()
		cancel()
	}
}

// insist calls do until it succeeds, fails for good or ctx ends.
func insist(ctx context.Context, do func() error) error {
	for pause := time.Second; ; pause = min(2*pause, 15*time.Second) {
		err := do()
		if err == nil || api.Permanent(err) || waitAfter(err) > time.Minute || process.Sleep(ctx, max(pause, waitAfter(err))) != nil {
			return err
		}
	}
}

// waitAfter returns how long Discord asks to wait.
func waitAfter(err error) time.Duration {
	if e, ok := errors.AsType[*api.Error](err); ok {
		return e.After
	}
	return 0
}
