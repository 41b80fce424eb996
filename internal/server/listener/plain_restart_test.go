package listener

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Name names the messenger as a carrier of the outbox.
func (*plain) Name() string { return "plain" }

// Carry sends a message of the outbox.
func (p *plain) Carry(ctx context.Context, m outbox.Message, _ []string, delivered func(id string)) (outbox.Fate, error) {
	sent, err := p.Send(ctx, direct, messenger.Outgoing{Text: m.Text})
	delivered(sent.ID)
	return outbox.Sent, err
}

// counting is an engine that answers with the number of the turn, and keeps what it was asked.
type counting struct {
	runtest.Fake

	p     *plain
	asked *[]string // under p.mu
}

func (e counting) Run(_ context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) (engine.Result, error) {
	e.p.mu.Lock()
	*e.asked = append(*e.asked, r.Input.Prompt)
	text := fmt.Sprintf("Answer %d.", len(*e.asked))
	e.p.changed.Broadcast()
	e.p.mu.Unlock()
	err := sink(runlog.Event{Type: runlog.Text, Text: text})
	return engine.Result{Text: text}, errors.Join(err, sink(runlog.Event{Type: runlog.Result, Text: text}))
}

// TestPlainRestarts: whenever the listener starts again, and however often a message comes, the agent is asked each message once and in
// order, and each of its answers arrives once.
func TestPlainRestarts(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			plainRestarts(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func plainRestarts(t *testing.T, random *rand.Rand) {
	able := messenger.Able{Text: 300}
	if random.IntN(2) == 0 {
		able.Edits, able.Span = 5, time.Second
	}
	var asked []string
	d := newDesk(t, able, nil)
	d.runner.Engines = func(string) (engine.Engine, error) { return counting{p: d.plain, asked: &asked}, nil }
	d.runner.Outbox = outbox.Post{Home: d.runner.Home, Disk: d.runner.Disk, Carriers: []outbox.Carrier{d.plain}, Timeout: time.Minute}
	d.listen()
	var said []string
	for i := range 1 + random.IntN(8) {
		said = append(said, fmt.Sprintf("<message %d>", i))
		for range 1 + random.IntN(3) { // it comes again
			d.says(fmt.Sprintf("id-%d", 100-i), said[i], "")
		}
		if random.IntN(3) == 0 {
			d.stop()
			d.listen()
			old := random.IntN(i + 1)
			d.says(fmt.Sprintf("id-%d", 100-old), said[old], "")
		}
	}
	d.until(func() bool { return strings.Contains(strings.Join(asked, ""), said[len(said)-1]) })
	d.stop()
	whole, at := strings.Join(asked, "\n"), 0
	for _, text := range said {
		next := strings.Index(whole, text)
		if strings.Count(whole, text) != 1 || next < at {
			t.Errorf("%s: asked %q", text, asked)
		}
		at = next
	}
	shown := ""
	for _, o := range d.sent {
		shown += o.Text + "\n"
	}
	for i := range asked {
		if answer := fmt.Sprintf("Answer %d.", i+1); strings.Count(shown, answer) != 1 {
			t.Errorf("%s is not there once: %q", answer, shown)
		}
	}
}

// TestPlainKilledBeforeNote: a process was killed after it has sent a part of an answer, and before it noted that. The next one finds the
// part by its nonce, and makes it say what the answer says.
func TestPlainKilledBeforeNote(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]string{"placeholder": "working…", "another text": "An", "the text": "Answer 1."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			d := newDesk(t, messenger.Able{Text: 300, Edits: 5, Span: time.Second}, nil)
			d.nonces = true
			d.runner.Engines = func(string) (engine.Engine, error) { return counting{p: d.plain, asked: &asked}, nil }
			d.listen()
			d.says("one", "<message>", "")
			d.until(func() bool { return len(d.sent) == 1 && d.sent[0].Text == "Answer 1." })
			d.stop()
			sent := d.sent[0]
			sent.Text = begun
			after := &desk{plain: &plain{T: t, able: d.able, nonces: true}}
			after.changed = sync.NewCond(&after.mu)
			if _, err := after.Send(t.Context(), direct, sent); err != nil {
				t.Fatal(err)
			}
			d.API = after.plain
			if err := d.showMissing(t.Context(), direct, "one", "Answer 1."); err != nil {
				t.Fatal(err)
			}
			if got := after.texts(1); len(got) != 1 || got[0] != "Answer 1." {
				t.Errorf("the messenger shows %q", got)
			}
		})
	}
}

// TestPlainStoppedBeforeQueue: a message that is not in the queue yet when the listener is stopped is left for the next one.
func TestPlainStoppedBeforeQueue(t *testing.T) {
	t.Parallel()
	var asked []string
	d := newDesk(t, messenger.Able{Text: 300}, nil)
	d.runner.Engines = func(string) (engine.Engine, error) { return counting{p: d.plain, asked: &asked}, nil }
	d.listen()
	held, err := lock.Try(d.runner.Home.Lock("queue"))
	if err != nil {
		t.Fatal(err)
	}
	d.says("one", "<message>", "")
	time.Sleep(50 * time.Millisecond) // until it waits for the lock
	d.stop()
	held.Release()
	d.listen()
	said := d.texts(1)
	d.stop()
	if len(d.sent) != 1 || said[0] != "Answer 1." {
		t.Errorf("said %+v", d.sent)
	}
}

// TestPlainJoined: a turn answers its message together with one that was left in the queue. That is one answer, also if the process was
// killed before it has noted that the messages are answered, and no reaction stays.
func TestPlainJoined(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]bool{"stopped": false, "killed": true} {
		for _, able := range []messenger.Able{{Text: 300}, {Text: 300, Reactions: true}} {
			t.Run(fmt.Sprint(name, able.Reactions), func(t *testing.T) {
				t.Parallel()
				plainJoined(t, able, killed)
			})
		}
	}
}

func plainJoined(t *testing.T, able messenger.Able, killed bool) {
	t.Helper()
	g := gate{begun: make(chan bool, 2), next: make(chan string)}
	d := newDesk(t, able, g)
	d.listen()
	d.says("first", "<one>", "")
	<-g.begun
	left := turn.Message{Text: "<two>", Group: "plain_" + direct, Source: "left"}
	ticket, _, err := turn.New(d.runner).Queue.Enqueue(t.Context(), left, turn.Options{Owner: true})
	if err != nil {
		t.Fatal(err)
	}
	do(t, d.handled.add(direct, "left", true))
	mark := func(id string) {
		if able.Reactions {
			do(t, d.React(t.Context(), direct, id, waitingMark))
		}
	}
	mark("left")
	d.says("second", "<three>", "")
	d.until(func() bool { return len(d.sent) == 1 || slices.Contains(d.marked, "second"+waitingMark) }) // that it is queued
	ticket.Leave()
	g.next <- "One."
	<-g.begun
	if waiting, err := d.runner.Queue.Contents(); err != nil || len(waiting.Running) != 2 {
		t.Fatalf("%+v are answered together, %v", waiting.Running, err)
	}
	g.next <- "Two."
	d.until(func() bool { return len(d.sent) > 0 && d.sent[len(d.sent)-1].Text == "Two." })
	d.stop()
	all := len(d.sent)
	if killed {
		do(t, d.handled.add(direct, "second", true))
		do(t, d.handled.add(direct, "left", true))
		do(t, d.handled.showing("second")([]string{d.id(all - 1)}))
		mark("left")
		mark("second")
	}
	d.nonces = true
	d.listen()
	d.lanes.wait()
	d.stop()
	if last := d.sent[len(d.sent)-1]; len(d.sent) != all || last.ReplyTo != "second" || last.Text != "Two." {
		t.Errorf("said %+v", d.sent)
	}
	if open := d.handled.open(); len(open) > 0 || len(d.marked) > 0 {
		t.Errorf("open: %v, marked: %v", open, d.marked)
	}
}
