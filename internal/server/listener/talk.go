package listener

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/server/listener/stream"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
)

// waitingMark is the reaction to a message that waits for the turn in progress.
const waitingMark = "⏳"

// mostMarks is how many messages of a channel have that reaction at one time: messengers take few reactions a second.
const mostMarks = 5

// talks are the conversations of the owner's in direct messages, by channel.
type talks struct {
	mu       sync.Mutex
	byID     map[string]*conversation
	stopping bool
	standIn  bool // somebody answers for senders that have died
	running  sync.WaitGroup
}

// conversation is the owner's messages in one channel that wait for their turn, and the turn in progress.
type conversation struct {
	listener *Listener
	channel  string
	waiting  []spoken
	turning  []spoken // their turn is in progress, or next
	gone     []string // ids of messages of waiting or turning that were deleted
	busy     bool
	marked   []mark
}

// mark is a message with waitingMark, once done is closed.
type mark struct {
	id   string
	done chan struct{}
}

// spoken is a message in the queue.
type spoken struct {
	*queue.Ticket

	id    string // the messenger's; "" if a button has said it
	place queue.Place
	notes []string
	as    func(text string) string // see said
}

// talk handles a message of the owner's. It runs in the channel's lane.
func (l *Listener) talk(ctx context.Context, h Home, m *messenger.Message) {
	if l.choose(ctx, m) {
		return
	}
	said := l.read(ctx, h, m)
	if ctx.Err() != nil {
		return
	}
	newest := l.heard.newest(m) // it may have changed during the downloads
	if newest == nil {
		l.forgo(ctx, m)
		return
	}
	said.Text = said.as(newest.Text)
	own := said.Text
	answered, err := l.address(ctx, h, m, &said)
	if ctx.Err() != nil {
		return
	}
	if before, as := strings.TrimSuffix(said.Text, own), said.as; before != "" { // what it replies to
		said.as = func(text string) string { return before + as(text) }
	}
	if err == nil && !answered {
		err = l.enqueue(ctx, h, m.Channel, m.ID, said)
	}
	if err != nil && ctx.Err() != nil { // the message is not in the queue: the next listener takes it
		return
	}
	if err != nil {
		l.tell(ctx, m.Channel, m.ID, "Your message was not accepted: "+stream.InShort(err.Error()))
	}
	if answered || err != nil {
		l.warn(l.handled.add(m.Channel, m.ID, false))
	}
}

// say puts something that the owner has said without a message, such as with a button, into the conversation in a channel.
func (l *Listener) say(ctx context.Context, channel string, m turn.Message) error {
	return l.enqueue(ctx, l.now(), channel, "", said{Message: m})
}

// enqueue puts what the owner has said into the queue, notes the message as handled, and lets its turn come.
func (l *Listener) enqueue(ctx context.Context, h Home, channel, id string, s said) error {
	s.Group, s.Source, s.First = l.Name+"_"+channel, id, h.Interrupt
	ticket, place, err := turn.New(h.Runner).Queue.Enqueue(ctx, s.Message, turn.Options{Owner: true})
	if err != nil {
		return err
	}
	if id != "" {
		l.warn(l.handled.add(channel, id, true)) // if that fails the entry in the queue tells
	}
	l.talks.add(l, channel, spoken{ticket, id, place, s.notes, s.as})
	return nil
}

// address finds out whom a reply is for. It reports whether the message was the answer to a question, which is passed on; else it
// completes what is said.
func (l *Listener) address(ctx context.Context, h Home, m *messenger.Message, s *said) (answered bool, err error) {
	if m.ReplyTo == "" {
		return false, nil
	}
	asked, err := turn.New(h.Runner).Replies.Asked(ctx, m.ReplyTo)
	if err != nil {
		return false, err
	}
	if asked != "" {
		if _, err := fire.New(h.Runner).Answers.Give(ctx, asked, s.Text); err != nil {
			return true, err
		}
		if paused, _, err := h.Runner.Spend.Paused(); paused {
			l.tell(ctx, m.Channel, m.ID, answerSaved)
			return true, err
		}
		l.agree(ctx, m)
		return true, l.Launch("answer", "--continue", "--", asked)
	}
	if done, err := l.answeredBefore(ctx, h, m.ReplyTo, s.Text); done || err != nil {
		return done, err
	}
	said, err := turn.New(h.Runner).Replies.Replying(ctx, m.ReplyTo, s.Message, turn.Options{Observe: run.Observer{Event: func(e runlog.Event) {
		if e.Type == runlog.Fork && e.Tool == runlog.ForkExpired {
			s.notes = append(s.notes, e.Text)
		}
	}}})
	if unknown := (*plaintext.Unknown)(nil); errors.As(err, &unknown) && unknown.What == "message" {
		text := ""
		if m.Quoted != nil {
			text = m.Quoted.Text
		} else { // the messenger may leave it out
			text, err = l.Messenger.Quote(ctx, m.Channel, m.ReplyTo)
		}
		if err == nil || text != "" {
			s.Text = prompt.Reply(prompt.Quote(text), 0, s.Text)
		}
		return false, nil
	}
	if err == nil {
		s.Message = said
	}
	return false, err
}

// answeredBefore reports whether a text is the answer that an earlier process has taken to the question of a message.
func (*Listener) answeredBefore(ctx context.Context, h Home, message, text string) (bool, error) {
	m, _, err := h.Runner.Sessions.ByMessage(ctx, message)
	if err != nil || m.MessageID == "" {
		return false, err
	}
	q, err := h.Runner.Questions.Load(m.Run())
	if err != nil || q.Message != m.MessageID || q.Answer == "" {
		return false, nil //nolint:nilerr // there is no question any more
	}
	choice, err := q.Choose(text)
	return err == nil && choice == q.Answer, nil
}

// agree acknowledges the answer to a question.
func (l *Listener) agree(ctx context.Context, m *messenger.Message) {
	if !l.API.Able().Reactions {
		l.tell(ctx, m.Channel, m.ID, "Your answer was passed on.")
		return
	}
	go func() { _ = l.API.React(ctx, m.Channel, m.ID, "✅") }()
}

// tell replies to a message with a line.
func (l *Listener) tell(ctx context.Context, channel, id, line string) {
	o := messenger.Outgoing{Text: l.API.Able().Style.Line(line), ReplyTo: id, Nonce: "tell-" + id}
	_, err := l.API.Send(ctx, channel, o)
	l.warn(err)
}

// add adds a message to the conversation of its channel, and begins a turn if none is in progress.
func (t *talks) add(l *Listener, channel string, s spoken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopping {
		s.Leave()
		return
	}
	if t.byID == nil {
		t.byID = map[string]*conversation{}
	}
	c := t.byID[channel]
	if c == nil {
		c = &conversation{listener: l, channel: channel}
		t.byID[channel] = c
	}
	if c.busy && s.id != "" && len(c.marked) < mostMarks {
		m := mark{s.id, make(chan struct{})}
		c.marked = append(c.marked, m)
		t.running.Go(func() {
			defer close(m.done)
			if l.API.Able().Reactions {
				ctx, cancel := context.WithTimeout(l.turns, stream.Patience)
				defer cancel()
				_ = l.API.React(ctx, channel, m.id, waitingMark) // without it the answer is only late
			} else if s.place.Ahead > 0 {
				l.tell(l.turns, channel, m.id, s.place.String())
			}
		})
	}
	c.waiting = append(c.waiting, s)
	if !c.busy {
		c.busy = true
		t.running.Go(func() { c.serve(t) })
	}
}

// serve takes turns as long as messages wait.
func (c *conversation) serve(t *talks) {
	for {
		t.mu.Lock()
		c.dropGone()
		if t.stopping || len(c.waiting) == 0 {
			c.busy = false
			t.mu.Unlock()
			return
		}
		own, marked := c.waiting, c.marked
		c.waiting, c.turning, c.marked = nil, own, nil
		t.mu.Unlock()
		left, done := c.turn(own)
		c.unmark(marked)
		c.unmarkLeft(own, done)
		c.close(done)
		t.mu.Lock()
		c.waiting, c.turning = append(left, c.waiting...), nil
		if t.stopping {
			c.leave()
		}
		t.mu.Unlock()
	}
}

// unmark removes the marks of messages whose turn has come.
func (c *conversation) unmark(marked []mark) {
	l := c.listener
	if !l.API.Able().Reactions {
		return
	}
	ctx, cancel := stream.Patient(l.turns, stream.Patience)
	defer cancel()
	for _, m := range marked {
		<-m.done
		l.warn(stream.Insist(ctx, func() error { return messenger.WithoutRefusal(l.API.Unreact(ctx, c.channel, m.id, waitingMark)) }))
	}
}

// unmarkLeft removes the reactions of those messages that a turn has answered beside its own, which a listener has left in the queue.
func (c *conversation) unmarkLeft(own []spoken, done []string) {
	ctx, cancel := stream.Patient(c.listener.turns, stream.Patience)
	defer cancel()
	for _, id := range done {
		if !slices.ContainsFunc(own, func(s spoken) bool { return s.id == id }) {
			c.listener.unreact(ctx, c.channel, id)
		}
	}
}

// close notes that nothing is left to show for messages, once their marks are removed. When the process is stopped, the next start says
// what became of them.
func (c *conversation) close(done []string) {
	if l := c.listener; !errors.Is(context.Cause(l.turns), stopping{}) {
		l.warn(l.handled.close(done...))
	}
}

// turn takes the turn of the first of own. It returns the messages that it has not answered, and the ids of the others.
func (c *conversation) turn(own []spoken) (left []spoken, done []string) {
	l, h, first, run := c.listener, c.listener.now(), own[0], ""
	show := stream.Stream{API: l.API, Now: l.Now, Showing: l.handled.showing(first.id), Left: func(ctx context.Context, o messenger.Outgoing) error {
		id := l.Name + "-" + cmp.Or(run, first.id, rand.Text()) // no run has begun, and a button has no message
		_, err := h.Runner.Outbox.Send(ctx, outbox.Message{ID: id, Run: run, Kind: outbox.Text, Text: o.Text})
		return err
	}}
	_, err := show.Show(l.turns, stream.Source{Channel: c.channel, Message: first.id, Place: first.place}, func(a *stream.Answer) (record runlog.Record, err error) {
		record, left, err = c.converse(h, own, a)
		run, done = record.ID, slices.Clone(record.Answers) // perhaps also messages that a listener has left in the queue
		return record, err
	})
	l.warn(err)
	for _, s := range own {
		if !slices.ContainsFunc(left, func(o spoken) bool { return o.Ticket == s.Ticket }) {
			done = append(done, s.id)
		}
	}
	return left, done
}

// converse lets the agent answer the first of own, with as many others as wait with it, and returns the messages that are left.
func (c *conversation) converse(h Home, own []spoken, a *stream.Answer) (record runlog.Record, left []spoken, err error) {
	l := c.listener
	var tickets []*queue.Ticket
	for _, s := range own {
		tickets = append(tickets, s.Ticket)
		for _, note := range s.notes {
			a.Note(note)
		}
	}
	observe := a.Observer()
	observe.Permit = l.Permit(c.channel)
	record, rest, err := turn.New(h.Runner).Queue.Converse(l.turns, tickets, turn.Options{Owner: true, Observe: observe})
	if record.ID == "" && l.talks.isGone(c, own[0]) {
		err = stream.ErrDeleted
	}
	if f, open, _ := h.Runner.Sessions.Fork(l.turns); open {
		a.SetButtons(ForkButtons(f))
	}
	for _, s := range own {
		if slices.Contains(rest, s.Ticket) {
			s.place, s.notes = queue.Place{}, nil
			left = append(left, s)
		}
	}
	return record, left, err
}

func (c *conversation) leave() {
	for _, s := range c.waiting {
		s.Leave()
	}
	c.waiting = nil
}

// stop keeps new turns from beginning. Messages that wait stay in the queue.
func (t *talks) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopping = true
	for _, c := range t.byID {
		c.leave()
	}
}

func (t *talks) wait() { t.running.Wait() }

// abandoned answers the messages whose senders have died, beside everything else.
func (t *talks) abandoned(l *Listener, h Home) {
	ok, err := h.Runner.Queue.Abandoned(l.turns)
	if l.turns.Err() == nil {
		l.warn(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !ok || t.standIn || t.stopping {
		return
	}
	t.standIn = true
	t.running.Go(func() {
		if err := turn.New(h.Runner).Queue.AnswerAbandoned(l.turns, turn.Options{}); err != nil && l.turns.Err() == nil {
			l.warn(fmt.Errorf("answer queued messages whose processes have ended: %w", err))
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.standIn = false
	})
}
