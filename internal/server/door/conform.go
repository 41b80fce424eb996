package door

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/server/listener/messenger"
)

// Case is what a door does in one case of the test of the protocol.
type Case struct {
	Name  string // what it should do
	Lacks string // what it says that it cannot do, and what takes the place of that; "": it was asked to do it
	Err   error  // what it did wrong
	Waits bool   // this is no case: the owner is to write a message within receiveTime
}

// receiveTime is how long the test waits for a message of the owner.
const receiveTime = 5 * time.Minute

// Conform tests a door with the lines of a scripted ollim. It sends messages to a channel, "" is that of the owner's direct messages, and
// with receive it waits until the owner has written one. It calls report with each case. Its error says that there can be no test.
func Conform(ctx context.Context, p Program, channel string, receive bool, report func(Case)) error {
	t := &trial{ctx: ctx, program: p, channel: channel}
	defer t.end()
	err := t.start()
	report(Case{Name: "says hello, with version 1 and what it can do, as its first line", Err: err})
	if err != nil {
		return nil
	}
	if t.channel = cmp.Or(channel, t.live.hello.Direct); t.channel == "" {
		return errors.New("hello has no direct: name a channel to send to with --channel")
	}
	err = t.try(slices.Concat(basic(), sending(), sendingMore(), changing(), reading(), ending()), report)
	if err == nil && receive {
		report(Case{Waits: true})
		err = t.try(receiving(), report)
	}
	if err == nil {
		report(Case{Name: "writes nothing but lines of the protocol", Err: errors.Join(t.faults()...)})
	}
	return err
}

// try tries cases, and reports each.
func (t *trial) try(list []proof, report func(Case)) error {
	for _, c := range list {
		if t.ctx.Err() != nil {
			return context.Cause(t.ctx)
		}
		if c.lacks != nil {
			if lacks := c.lacks(t.live.hello.Able); lacks != "" {
				report(Case{Name: c.name, Lacks: lacks})
				continue
			}
		}
		err := c.do(t)
		if again := t.revive(); err == nil {
			err = again
		}
		report(Case{Name: c.name, Err: err})
		if t.live == nil {
			return errors.New("the door does not start again: the cases that follow were not tried")
		}
	}
	return nil
}

// proof is a case: what a door should do, and how that is tried.
type proof struct {
	name  string
	lacks func(Able) string // why it is left out; "": it is not
	do    func(*trial) error
}

// trial is a door in a test.
type trial struct {
	ctx     context.Context
	program Program
	channel string
	live    *live
	read    chan struct{} // closed at the end of its output

	first, second string // messages that were sent

	mu       sync.Mutex
	wrong    []error
	received chan Message
	lines    chan int // numbers of the lines of received
}

// start starts the program. After an error there is none.
func (t *trial) start() (err error) {
	if t.live, err = t.program.open(t.ctx); err != nil {
		return err
	}
	l, read := t.live, make(chan struct{})
	t.read, t.received, t.lines = read, make(chan Message, 1000), make(chan int, 1000)
	received, lines := t.received, t.lines
	go func() {
		defer close(read)
		l.serve(func(line line) error {
			switch line.kind {
			case TypeMessage:
			case TypeEdited, TypeDeleted:
				_, err := newBot(t.program.Name, "").changed(line)
				return err
			default:
				return nil
			}
			m, err := decode[Message](line.data)
			if err == nil {
				_, err = newBot(t.program.Name, "").received(m)
			}
			select {
			case received <- m:
				lines <- line.number
			default:
			}
			return err
		}, t.fault)
	}()
	return nil
}

func (t *trial) fault(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = append(t.wrong, err)
}

func (t *trial) faults() []error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrong
}

// revive starts the program again if it has ended. The error says that it has.
func (t *trial) revive() error {
	if t.live == nil {
		return nil
	}
	select {
	case <-t.read:
		err := t.live.explain(errors.New("the door ended"))
		return errors.Join(err, t.start())
	default:
		return nil
	}
}

// restart kills the program, or ends it, and starts it again.
func (t *trial) restart(kill bool) error {
	if kill {
		t.live.in.end()
		t.live.in.drop()
		t.live.peer.Close(0)
	} else {
		t.live.close()
	}
	<-t.read
	return t.start()
}

func (t *trial) end() {
	if t.live != nil {
		t.live.close()
	}
}

// ask makes a request. When the messenger asks to wait, it is made again after that.
func (t *trial) ask(r Request) (Done, error) {
	for {
		done, err := t.live.ask(t.ctx, r)
		wait := messenger.After(err)
		if err == nil || wait == 0 || wait > mostWait {
			return done, err
		}
		select {
		case <-time.After(wait):
		case <-t.ctx.Done():
			return done, err
		}
	}
}

// send sends a message and returns its id.
func (t *trial) send(r Request) (id string, err error) {
	r.Type, r.Channel, r.Nonce = TypeSend, t.channel, cmp.Or(r.Nonce, rand.Text()[:24])
	done, err := t.ask(r)
	if err == nil && (done.ID != "" || t.live.hello.Able.Edits > 0) {
		err = checkID("id", done.ID)
	}
	return done.ID, err
}

func (t *trial) says(text string) (id string, err error) { return t.send(Request{Text: &text}) }

// refused returns nil if a request fails for good.
func (t *trial) refused(r Request) error {
	_, err := t.ask(r)
	switch {
	case err == nil:
		return errors.New("it was done")
	case !messenger.IsPermanent(err):
		return fmt.Errorf("failed without permanent or refused: %w", err)
	}
	return nil
}

// raw writes a line that is no Request, and returns nil if the door still answers.
func (t *trial) raw(o map[string]any) error {
	if err := t.live.in.put(o); err != nil {
		return err
	}
	_, err := t.ask(Request{Type: TypePing})
	return err
}

func basic() []proof {
	return []proof{
		{"names channels, messages and users in hello by ids that are words", nil, func(t *trial) error {
			err := checkID("direct", cmp.Or(t.live.hello.Direct, "none"))
			for _, user := range t.live.hello.Owners {
				err = errors.Join(err, checkUser(user))
			}
			return err
		}},
		{"answers a ping", nil, func(t *trial) error { return t.raw(map[string]any{"type": "taken", "line": 0}) }},
		{"ignores a line of an unknown type without ref", nil, func(t *trial) error { return t.raw(map[string]any{"type": "unheard-of", "a": []int{1}}) }},
		{"ignores unknown fields of a request", nil, func(t *trial) error {
			return t.raw(map[string]any{"type": TypePing, "ref": 1 << 52, "news": map[string]any{"a": []string{"b"}}})
		}},
		{"answers a request of an unknown type with failed", nil, func(t *trial) error { return t.refused(Request{Type: "unheard-of"}) }},
		{"answers 200 requests that are written at once, each ref once", nil, func(t *trial) error { return t.together(200) }},
		{"reads a line of 500,000 bytes", nil, func(t *trial) error {
			return t.raw(map[string]any{"type": "unheard-of", "text": strings.Repeat("ä", 250_000)})
		}},
		{"ignores a pressed that answers nothing", nil, func(t *trial) error { return t.raw(map[string]any{"type": TypePressed, "id": "none"}) }},
	}
}

// together makes requests without waiting for answers.
func (t *trial) together(n int) error {
	ended := make(chan error, n)
	for range n {
		go func() {
			_, err := t.live.ask(t.ctx, Request{Type: TypePing})
			ended <- err
		}()
	}
	var err error
	for range n {
		err = cmp.Or(err, <-ended)
	}
	return err
}

func ending() []proof {
	ends := func(t *trial) error {
		t.live.in.end()
		<-t.live.in.closed
		_ = t.live.peer.In.Close()
		how := t.live.peer.End(endTime)
		t.live.peer.Close(0)
		<-t.read
		err := t.start()
		if how == "" {
			err = errors.Join(fmt.Errorf("it had not ended after %s", endTime), err)
		}
		return err
	}
	return []proof{
		{"ends within 5 seconds when its input ends", nil, ends},
		{"ends so while it is asked much", nil, func(t *trial) error {
			for range 20 {
				if err := t.live.in.put(Request{Type: TypePing, Ref: 1 << 50}); err != nil {
					return err
				}
			}
			return ends(t)
		}},
		{"starts again after it was killed with -9", nil, func(t *trial) error { return t.restart(true) }},
		{"edits a message that an earlier process of it has sent", canEdit, func(t *trial) error {
			text := "ollim door test: edited after a restart"
			_, err := t.ask(Request{Type: TypeEdit, Channel: t.channel, ID: t.first, Text: &text})
			return err
		}},
		{"creates no second message for a nonce after it was killed", canNonce, func(t *trial) error {
			text, nonce := "ollim door test: one nonce, two processes", rand.Text()[:24]
			before, err := t.send(Request{Text: &text, Nonce: nonce})
			if err == nil {
				err = t.restart(true)
			}
			if err != nil {
				return err
			}
			after, err := t.send(Request{Text: &text, Nonce: nonce})
			if err == nil && before != after {
				err = fmt.Errorf("%s became %s", before, after)
			}
			return err
		}},
	}
}

func receiving() []proof {
	var m Message
	return []proof{
		{"delivers a message of the owner", nil, func(t *trial) (err error) {
			m, _, err = t.next(receiveTime)
			return err
		}},
		{"delivers it again after a restart, because no taken has come", nil, func(t *trial) error {
			if err := t.restart(true); err != nil {
				return err
			}
			again, number, err := t.next(time.Minute)
			if err != nil {
				return err
			}
			if first, _ := json.Marshal(m.Text); again.ID != m.ID || again.Text != m.Text { //nolint:errchkjson // a text
				err = fmt.Errorf("it delivered %s %q, want %s %s", again.ID, again.Text, m.ID, first)
			}
			return errors.Join(err, t.raw(map[string]any{"type": TypeTaken, "line": number, "id": again.ID}))
		}},
		{"does not deliver it again after taken", nil, func(t *trial) error {
			if err := t.restart(false); err != nil {
				return err
			}
			if again, _, err := t.next(quiet); err == nil {
				return fmt.Errorf("it delivered %s %q", again.ID, again.Text)
			}
			return nil
		}},
	}
}

const quiet = 10 * time.Second // in which a message would have been delivered again

// next returns the next message, with the number of its line.
func (t *trial) next(within time.Duration) (Message, int, error) {
	select {
	case m := <-t.received:
		return m, <-t.lines, nil
	case <-t.read:
		return Message{}, 0, errLost
	case <-t.ctx.Done():
		return Message{}, 0, context.Cause(t.ctx)
	case <-time.After(within):
		return Message{}, 0, fmt.Errorf("no message within %s", within)
	}
}
