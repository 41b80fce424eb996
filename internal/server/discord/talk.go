package discord

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
)

// waitingMark is the reaction to a message that waits for the turn in progress.
const waitingMark = "⏳"

// mostMarks is how many messages of a channel have that reaction at one time: Discord takes four reactions a second.
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
	listener *listener
	channel  string
	waiting  []spoken
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

	id    string // Discord's; "" if a button has said it
	place queue.Place
	notes []string
}

// talk handles a message of the owner's. It runs in the channel's lane.
func (l *listener) talk(ctx context.Context, h Home, m *discordgo.Message) {
	said := l.read(ctx, h, m)
	if ctx.Err() != nil {
		return
	}
	answered, err := l.address(ctx, h, m, &said)
	if ctx.Err() != nil {
		return
	}
	if err == nil && !answered {
		err = l.enqueue(ctx, h, m.ChannelID, m.ID, said)
	}
	if err != nil {
		l.tell(ctx, m, "-# Your message was not accepted: "+plain(err))
	}
	if answered || err != nil {
		l.warn(l.handled.add(m.ChannelID, m.ID, false))
	}
}

// say puts something that the owner has said without a message, such as with a button, into the conversation in a channel.
func (l *listener) say(ctx context.Context, channel string, m turn.Message) error {
	return l.enqueue(ctx, l.now(), channel, "", said{Message: m})
}

// enqueue puts what the owner has said into the queue, notes the message as handled, and lets its turn come.
func (l *listener) enqueue(ctx context.Context, h Home, channel, id string, s said) error {
	s.Group, s.Source, s.First = "discord_"+channel, id, h.Interrupt
	ticket, place, err := turn.New(h.Runner).Queue.Enqueue(ctx, s.Message, turn.Options{Owner: true})
	if err != nil {
		return err
	}
	if id != "" {
		l.warn(l.handled.add(channel, id, true)) // if that fails the entry in the queue tells
	}
	l.talks.add(l, channel, spoken{ticket, id, place, s.notes})
	return nil
}

// address finds out whom a reply is for. It reports whether the message was the answer to a question, which is passed on; else it
// completes what is said.
func (l *listener) address(ctx context.Context, h Home, m *discordgo.Message, s *said) (answered bool, err error) {
	to := m.MessageReference
	if m.Type != discordgo.MessageTypeReply || to == nil || to.MessageID == "" {
		return false, nil
	}
	asked, err := turn.New(h.Runner).Replies.Asked(ctx, to.MessageID)
	if err != nil {
		return false, err
	}
	if asked != "" {
		if _, err := fire.New(h.Runner).Answers.Give(ctx, asked, s.Text); err != nil {
			return true, err
		}
		l.agree(ctx, m)
		if paused, _, err := h.Runner.Spend.Paused(); paused {
			return true, err // the run goes on after ollim resume
		}
		return true, l.Launch("answer", "--continue", "--", asked)
	}
	if done, err := l.answeredBefore(ctx, h, to.MessageID, s.Text); done || err != nil {
		return done, err
	}
	said, err := turn.New(h.Runner).Replies.Replying(ctx, to.MessageID, s.Message, turn.Options{Observe: run.Observer{Event: func(e runlog.Event) {
		if e.Type == runlog.Fork && e.Tool == runlog.ForkExpired {
			s.notes = append(s.notes, e.Text)
		}
	}}})
	if unknown := (*plaintext.Unknown)(nil); errors.As(err, &unknown) && unknown.What == "message" {
		quoted := m.ReferencedMessage
		if quoted == nil { // Discord may leave it out
			quoted, err = l.API.Message(ctx, m.ChannelID, to.MessageID)
		}
		if text := quoteOf(quoted); err == nil || text != "" {
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
func (*listener) answeredBefore(ctx context.Context, h Home, message, text string) (bool, error) {
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

// quoteOf is what a message says: its text, or the parts of its first embed.
func quoteOf(m *discordgo.Message) string {
	switch {
	case m == nil || m.Author == nil:
		return ""
	case m.Content != "" || len(m.Embeds) == 0 || m.Embeds[0] == nil:
		return m.Content
	}
	e := outbox.Embed{Title: m.Embeds[0].Title, Description: m.Embeds[0].Description}
	for _, f := range m.Embeds[0].Fields {
		if f != nil {
			e.Fields = append(e.Fields, outbox.Field{Name: f.Name, Value: f.Value})
		}
	}
	return e.Text()
}

func (l *listener) agree(ctx context.Context, m *discordgo.Message) {
	go func() { _ = l.API.React(ctx, m.ChannelID, m.ID, "✅") }()
}

func (l *listener) tell(ctx context.Context, m *discordgo.Message, text string) {
	_, err := l.API.Send(ctx, m.ChannelID, api.Outgoing{Text: text, ReplyTo: m.ID, Nonce: "tell-" + m.ID})
	l.warn(err)
}

// plain returns an error in one line that Discord does not format.
func plain(err error) string { return escapeMarkdown(inShort(err.Error())) }

// add adds a message to the conversation of its channel, and begins a turn if none is in progress.
func (t *talks) add(l *listener, channel string, s spoken) {
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
			_ = l.API.React(l.turns, channel, m.id, waitingMark) // without it the answer is only late
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
		if t.stopping || len(c.waiting) == 0 {
			c.busy = false
			t.mu.Unlock()
			return
		}
		own, marked := c.waiting, c.marked
		c.waiting, c.marked = nil, nil
		t.mu.Unlock()
		left := c.turn(own)
		c.unmark(marked)
		t.mu.Lock()
		c.waiting = append(left, c.waiting...)
		if t.stopping {
			c.leave()
		}
		t.mu.Unlock()
	}
}

// unmark removes the marks of messages whose turn has come.
func (c *conversation) unmark(marked []mark) {
	l := c.listener
	ctx, cancel := patient(l.turns, patience)
	defer cancel()
	for _, m := range marked {
		<-m.done
		l.warn(insist(ctx, func() error { return ignoreRefusal(l.API.Unreact(ctx, c.channel, m.id, waitingMark)) }))
	}
}

// turn takes the turn of the first of own, and returns the messages that it has not answered.
func (c *conversation) turn(own []spoken) (left []spoken) {
	l, h, first, run := c.listener, c.listener.now(), own[0], ""
	stream := stream{API: l.API, Now: l.Now, Showing: l.handled.showing(first.id), Left: func(ctx context.Context, o api.Outgoing) error {
		id := "discord-" + cmp.Or(run, first.id, rand.Text()) // no run has begun, and a button has no message
		_, err := h.Runner.Outbox.Send(ctx, outbox.Message{ID: id, Run: run, Kind: outbox.Text, Text: o.Text})
		return err
	}}
	_, err := stream.show(l.turns, source{c.channel, first.id}, func(a *answer) (record runlog.Record, err error) {
		record, left, err = c.converse(h, own, a)
		run = record.ID
		return record, err
	})
	l.warn(err)
	var done []string
	for _, s := range own {
		if !slices.ContainsFunc(left, func(o spoken) bool { return o.Ticket == s.Ticket }) {
			done = append(done, s.id)
		}
	}
	if !errors.Is(context.Cause(l.turns), stopping{}) { // else the next start says what became of them
		l.warn(l.handled.close(done...))
	}
	return left
}

// converse lets the agent answer the first of own, with as many others as wait with it, and returns the messages that are left.
func (c *conversation) converse(h Home, own []spoken, a *answer) (record runlog.Record, left []spoken, err error) {
	l := c.listener
	var tickets []*queue.Ticket
	for _, s := range own {
		tickets = append(tickets, s.Ticket)
		for _, note := range s.notes {
			a.note(note)
		}
	}
	if first := own[0].place; first.Ahead > 0 {
		a.queued(first)
	}
	observe := a.observer()
	observe.Permit = l.Permit(c.channel)
	record, rest, err := turn.New(h.Runner).Queue.Converse(l.turns, tickets, turn.Options{Owner: true, Observe: observe})
	if f, open, _ := h.Runner.Sessions.Fork(l.turns); open {
		a.setButtons(api.Buttons(forkButtons(f)...))
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
func (t *talks) abandoned(l *listener, h Home) {
	ok, err := h.Runner.Queue.Abandoned(l.turns)
	l.warn(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !ok || t.standIn || t.stopping {
		return
	}
	t.standIn = true
	t.running.Go(func() {
		if err := turn.New(h.Runner).Queue.AnswerAbandoned(l.turns, turn.Options{}); err != nil && l.turns.Err() == nil {
			l.warn(fmt.Errorf("answer messages whose senders have died: %w", err))
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.standIn = false
	})
}
