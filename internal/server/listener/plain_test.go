package listener

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
)

// plain is a messenger that can do little: it has no order of ids, no history, no reactions and no buttons, and edits only if able
// says so. A request for anything else fails the test.
type plain struct {
	*testing.T

	able messenger.Able

	mu      sync.Mutex
	changed *sync.Cond
	sent    []messenger.Outgoing
	ids     []string // of sent
	deleted []string // of sent; nil: the messenger cannot delete
	nonces  bool     // the messenger knows nonces
	marked  []string // ids with their reactions, if able says that there are some

	delivered func(id string)                                                  // nil, or called when a message is there and its sender does not know yet
	past      func(channel, after string) []*messenger.Message                 // nil: the messenger has no history
	fetch     func(ctx context.Context, address string) (data []byte, _ error) // nil: it has no files
}

var errLacking = errors.New("the messenger cannot do that")

func (p *plain) Able() messenger.Able { return p.able }

func (p *plain) Send(_ context.Context, _ string, o messenger.Outgoing) (sent messenger.Sent, _ error) {
	if p.delivered != nil {
		defer func() { p.delivered(sent.ID) }()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(o.Buttons)+len(o.Files) > 0 || messenger.Size(o.Text) > p.able.Text {
		p.Errorf("sent %+v", o)
	}
	if i := slices.IndexFunc(p.sent, func(before messenger.Outgoing) bool { return before.Nonce == o.Nonce }); p.nonces && i >= 0 {
		return messenger.Sent{ID: p.ids[i], Text: p.sent[i].Text}, nil
	}
	id := fmt.Sprintf("plain-%d", 999-len(p.sent))
	p.sent, p.ids = append(p.sent, o), append(p.ids, id)
	p.changed.Broadcast()
	return messenger.Sent{ID: id, Text: o.Text}, nil
}

func (p *plain) Edit(_ context.Context, _, id string, o messenger.Outgoing) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.ids, id)
	if p.able.Edits == 0 || i < 0 || o.Text == "" || len(o.Buttons) > 0 {
		return p.lacking("edit")
	}
	p.sent[i].Text = o.Text
	p.changed.Broadcast()
	return nil
}

func (p *plain) lacking(what string) error {
	p.Errorf("a request to %s", what)
	return errLacking
}

// Delete deletes a message of the bot.
func (p *plain) Delete(_ context.Context, _, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deleted == nil {
		return p.lacking("delete")
	}
	p.deleted = append(p.deleted, id)
	p.changed.Broadcast()
	return nil
}

func (p *plain) React(_ context.Context, _, id, emoji string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.able.Reactions {
		return p.lacking("react")
	}
	p.marked = append(p.marked, id+emoji)
	p.changed.Broadcast()
	return nil
}

func (p *plain) Unreact(_ context.Context, _, id, emoji string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.able.Reactions {
		return p.lacking("unreact")
	}
	p.marked = slices.DeleteFunc(p.marked, func(mark string) bool { return mark == id+emoji })
	return nil
}

func (*plain) Typing(context.Context, string) error { return nil }

func (p *plain) Parent(context.Context, string) (string, error) {
	return "", p.lacking("find the parent")
}

func (*plain) Quote(context.Context, string, string) (string, error) {
	return "", &messenger.Permanent{Text: "it cannot be read", Refused: true}
}

func (p *plain) History(_ context.Context, channel, after string, _ int) ([]*messenger.Message, error) {
	if p.past == nil {
		return nil, p.lacking("read the history")
	}
	return p.past(channel, after), nil
}

func (p *plain) Download(ctx context.Context, address string, _ int64) ([]byte, error) {
	if p.fetch == nil {
		return nil, p.lacking("download")
	}
	return p.fetch(ctx, address)
}

// until waits until something holds. It is asked with mu held.
func (p *plain) until(holds func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !holds() {
		p.changed.Wait()
	}
}

// texts waits for so many messages of the bot and returns their texts.
func (p *plain) texts(n int) (list []string) {
	p.until(func() bool { return len(p.sent) >= n })
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.sent {
		list = append(list, o.Text)
	}
	return list
}

// count returns how many messages the bot has sent.
func (p *plain) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sent)
}

// id returns the id of the n-th message of the bot.
func (p *plain) id(n int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ids[n]
}

// desk is the owner's data directory, with a listener while listen runs.
type desk struct {
	*plain
	*Listener

	runner  *run.Runner
	heard   context.Context      // of what the messenger's package receives
	untaken []*messenger.Message // to be delivered again, under mu
	ran     chan string          // command lines
	stop    func()
}

const (
	theOwner = "owner-1"
	direct   = "direct-1"
)

func newDesk(t *testing.T, able messenger.Able, e engine.Engine) *desk {
	t.Helper()
	d := &desk{plain: &plain{T: t, able: able}, runner: runtest.New(t, e), ran: make(chan string, 9)}
	d.changed = sync.NewCond(&d.mu)
	d.runner.Queue.Runs = func(string) queue.Fate { return queue.Fate{} }
	return d
}

// listen starts a listener, as another process does.
func (d *desk) listen() {
	d.Helper()
	l, err := Open(Options{
		Messenger: d.plain, Notify: func(...string) {}, Grace: time.Hour,
		Home: func() (Home, error) {
			return Home{Dir: d.runner.Home, Disk: d.runner.Disk, Runner: d.runner, Owner: theOwner, Allow: []string{"room"}}, nil
		},
		Actions: &Actions{
			Name: "plain", Now: time.Now, Warn: func(m string) { d.Error(m) },
			Runner: func() (*run.Runner, error) { return d.runner, nil },
			Ollim: func(_ context.Context, words ...string) (string, error) {
				d.ran <- strings.Join(words, " ")
				return "", nil
			},
		},
	})
	if err != nil {
		d.Fatal(err)
	}
	ctx, stop := context.WithCancel(d.Context())
	ready, ended := make(chan bool), make(chan error)
	go func() {
		ended <- l.Run(ctx, Self{Direct: direct}, func(ctx context.Context) error {
			d.heard = ctx
			close(ready)
			<-ctx.Done()
			return nil
		})
	}()
	<-ready
	d.mu.Lock()
	again := slices.Clone(d.untaken)
	d.mu.Unlock()
	for _, m := range again {
		l.Hear(d.heard, m)
	}
	d.Listener, d.stop = l, func() {
		stop()
		if err := <-ended; err != nil {
			d.Error(err)
		}
		l.Close()
	}
}

// says lets the owner say something, and returns when the listener has heard it.
func (d *desk) says(id, text, replyTo string) {
	m := &messenger.Message{ID: id, Channel: direct, User: theOwner, Direct: true, Text: text, ReplyTo: replyTo}
	m.Taken = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.untaken = slices.DeleteFunc(d.untaken, func(o *messenger.Message) bool { return o == m })
	}
	d.mu.Lock()
	d.untaken = append(d.untaken, m)
	d.mu.Unlock()
	d.Hear(d.heard, m)
}

// TestPlainMessenger: a messenger that can only send gets each answer once, whole, in parts that fit; a message that comes again, also
// after a restart, is not answered again.
func TestPlainMessenger(t *testing.T) {
	answer := strings.Repeat("A sentence of the answer. ", 40)
	d := newDesk(t, messenger.Able{Text: 200}, runtest.Plays(nil, runlog.Event{Type: runlog.Text, Text: answer}))
	d.listen()
	d.says("z", "one", "")
	d.says("z", "one", "")
	first := d.texts(6)
	d.stop()
	d.listen()
	if got := strings.Join(first, ""); strings.TrimSpace(got) != strings.TrimSpace(answer) || d.sent[0].ReplyTo != "z" {
		t.Errorf("said %q", first)
	}
	d.says("a", "two", "")
	d.texts(12)
	d.stop()
	if _, err := os.Stat(d.runner.Home.State("door_plain.json")); err != nil {
		t.Error(err)
	}
	d.listen()
	d.says("z", "one", "")
	d.says("a", "two", "")
	d.says("m", "three", "")
	if all := d.texts(18); strings.Join(all[12:], "") != strings.Join(first, "") {
		t.Errorf("said %q", all)
	}
	d.stop()
	if len(d.sent) != 18 || d.sent[12].ReplyTo != "m" {
		t.Errorf("%d messages", len(d.sent))
	}
}

// gate is an engine that answers when it is let.
type gate struct {
	runtest.Fake

	begun chan bool
	next  chan string
}

func (g gate) Run(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) (engine.Result, error) {
	g.begun <- true
	text := <-g.next
	return engine.Result{Text: text}, sink(runlog.Event{Type: runlog.Text, Text: text})
}

// TestPlainQueue: without reactions a line says that a message waits for its turn, and its answer comes later.
func TestPlainQueue(t *testing.T) {
	g := gate{begun: make(chan bool, 2), next: make(chan string)}
	d := newDesk(t, messenger.Able{Text: 300}, g)
	d.listen()
	d.says("first", "one", "")
	<-g.begun
	d.says("second", "two", "")
	if got := d.texts(1); got[0] != "queued: one message is before it" {
		t.Errorf("said %q", got)
	}
	g.next <- "One."
	g.next <- "Two."
	d.texts(3)
	d.stop()
	if d.sent[0].ReplyTo != "second" || d.sent[1].Text != "One." || d.sent[1].ReplyTo != "first" || d.sent[2].Text != "Two." || d.sent[2].ReplyTo != "second" {
		t.Errorf("said %+v", d.sent)
	}
}

// TestPlainGuests: strangers get nothing; whoever addresses the bot in an allowed channel is answered.
func TestPlainGuests(t *testing.T) {
	d := newDesk(t, messenger.Able{Text: 200, Mentions: []string{"ollim:"}}, runtest.Plays(nil, runlog.Event{Type: runlog.Text, Text: "Hello."}))
	d.listen()
	for i, m := range []messenger.Message{
		{User: "stranger", Channel: "elsewhere", Direct: true}, {User: "", Channel: "room", Addressed: true},
		{User: "stranger", Channel: "room"}, {User: "stranger", Channel: "other", Addressed: true},
	} {
		m.ID, m.Text = fmt.Sprint("no-", i), "hello"
		d.Hear(t.Context(), &m)
	}
	d.Hear(t.Context(), &messenger.Message{ID: "yes", User: "stranger", Name: "Eve", Channel: "room", Addressed: true, Text: "ollim: hello"})
	d.texts(1)
	d.stop()
	if len(d.sent) != 1 || d.sent[0].ReplyTo != "yes" || d.sent[0].Text != "Hello." {
		t.Errorf("said %+v", d.sent)
	}
}

// TestPlainChoices: where the messenger has no buttons, a reply with the number of one presses it, once, also after a restart.
func TestPlainChoices(t *testing.T) {
	for name, able := range map[string]messenger.Able{
		"sends":       {Text: 300},
		"edits":       {Text: 300, Edits: 5, Span: time.Second},
		"few letters": {Text: 70},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, able, runtest.Plays(nil))
			d.listen()
			buttons := []outbox.Button{
				{Label: "Done", ID: outbox.ButtonID(outbox.ButtonTaskDone, "7")}, {Label: "Delete", ID: outbox.ButtonID(outbox.ButtonTaskDel, "7")},
			}
			if _, err := d.API.Send(t.Context(), direct, messenger.Outgoing{Text: "A task is due today.", Buttons: buttons}); err != nil {
				t.Fatal(err)
			}
			said := strings.Join(d.texts(1), "\n")
			if !strings.Contains(said, "1: Done\n2: Delete") {
				t.Errorf("said %q", said)
			}
			n := d.count()
			offered := d.id(n - 1)
			d.stop()
			d.listen()
			d.says("first", " 2\n", offered)
			if got := d.texts(n + 1)[n]; !strings.Contains(got, "again") {
				t.Errorf("said %q", got)
			}
			d.Wait()
			d.says("second", "2", offered)
			if got := <-d.ran; got != "task rm -- 7" {
				t.Errorf("ran %q", got)
			}
			d.Wait()
			d.says("third", "2", offered) // one button is left: a message for the agent
			d.texts(n + 2)
			d.says("fourth", "1", offered)
			if got := <-d.ran; got != "task done -- 7" {
				t.Errorf("ran %q", got)
			}
			d.stop()
		})
	}
}

// TestPlainPermission: a question about a permission is answered by a number.
func TestPlainPermission(t *testing.T) {
	for name, able := range map[string]messenger.Able{"sends": {Text: 300}, "edits": {Text: 300, Edits: 5, Span: time.Second}} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, able, runtest.Plays(nil))
			d.listen()
			for i, want := range []bool{true, false} {
				answer := make(chan bool)
				before := d.count()
				go func() { answer <- d.Permit(direct)(t.Context(), runlog.Event{Text: "Bash(date)"}) }()
				d.texts(before + 1)
				d.says(fmt.Sprint("answer-", i), map[bool]string{true: "1", false: "3"}[want], d.id(before))
				if got := <-answer; got != want {
					t.Errorf("allowed: %t", got)
				}
			}
			d.stop()
			if last := d.sent[len(d.sent)-1].Text; !strings.HasPrefix(last, "❌ Denied: Bash(date)") {
				t.Errorf("said %q", last)
			}
		})
	}
}

// TestPlainAnswerBeforeTheNote: a number that answers a message presses its button also if the sender does not know yet that the message is
// there. It waits for the sender.
func TestPlainAnswerBeforeTheNote(t *testing.T) {
	d := newDesk(t, messenger.Able{Text: 300}, runtest.Plays(nil, runlog.Event{Type: runlog.Text, Text: "Two?"}))
	d.listen()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	answers := 0
	d.delivered = func(id string) {
		if answers++; answers > 1 {
			return
		}
		d.says("answer", "2", id)
		for d.handled.offering.TryRLock() { // until the number waits
			d.handled.offering.RUnlock()
			if d.handled.has(direct, "answer") {
				end() // else the question waits for its answer
				return
			}
			runtime.Gosched()
		}
	}
	if !d.Permit(direct)(ctx, runlog.Event{Text: "Bash(date)"}) {
		t.Error("it is denied")
	}
	d.stop()
	if last := d.sent[len(d.sent)-1].Text; len(d.sent) != 2 || !strings.HasPrefix(last, "🔁 Allowed for this session: Bash(date)") {
		t.Errorf("said %+v", d.sent)
	}
}

// TestPlainCutOff: without a history, the next listener says that an answer was cut off and leaves its beginning as it is.
func TestPlainCutOff(t *testing.T) {
	d := newDesk(t, messenger.Able{Text: 300}, runtest.Plays(nil))
	d.listen()
	do(t, d.handled.add("room", "asked", true))
	do(t, d.handled.showing("asked")([]string{"begun"}))
	d.stop()
	d.listen()
	if got := d.texts(1)[0]; got != sayCut || d.sent[0].ReplyTo != "asked" {
		t.Errorf("said %q", got)
	}
	d.lanes.wait()
	d.stop()
	if open := d.handled.open(); len(open) > 0 {
		t.Errorf("open: %v", open)
	}
}

// TestPlainEdits: an answer is shown while it arrives where messages can be edited, in plain text.
func TestPlainEdits(t *testing.T) {
	d := newDesk(t, messenger.Able{Text: 300, Edits: 5, Span: time.Second}, runtest.Plays(nil, runlog.Event{Type: runlog.Text, Text: "Hello *you*."}))
	d.listen()
	d.says("q", "hello", "")
	d.until(func() bool { return len(d.sent) > 0 && d.sent[0].Text == "Hello *you*." })
	d.stop()
	if len(d.sent) != 1 {
		t.Errorf("said %+v", d.sent)
	}
}

// TestHandledWithoutOrder: ids without an order are known after a restart, in any order, as long as there are not too many after them.
func TestHandledWithoutOrder(t *testing.T) {
	path := t.TempDir() + "/handled.json"
	load := func() *handled {
		h, err := loadHandled(path, store.Disk{Now: time.Now, Warn: func(m string) { t.Error(m) }}, nil)
		do(t, err)
		return h
	}
	h := load()
	do(t, h.begin("c", "m"))
	for _, id := range []string{"z", "a", "k"} {
		do(t, h.add("c", id, false))
	}
	do(t, h.passed("c", "stranger"))
	h = load()
	for id, want := range map[string]bool{"z": true, "a": true, "k": true, "b": false, "stranger": true} {
		if got := h.has("c", id); got != want {
			t.Errorf("%s: %t", id, got)
		}
	}
	if got := h.upTo("c"); got != "stranger" {
		t.Errorf("the history begins after %s", got)
	}
	s := h.state.Channels["c"]
	for i := range mostAfter {
		s.After = append(s.After, fmt.Sprint("x", i))
	}
	h.state.Channels["c"] = s
	do(t, h.add("c", "last", false))
	if got := h.state.Channels["c"].After; len(got) != mostAfter || h.has("c", "z") || !h.has("c", "last") || !h.has("c", "x5") {
		t.Errorf("%d ids", len(got))
	}
}
