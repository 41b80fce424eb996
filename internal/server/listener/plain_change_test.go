package listener

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
)

// asking is an engine that says what it is asked, and answers when it is let.
type asking struct {
	runtest.Fake

	asked, next chan string
}

func (e asking) Run(_ context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) (engine.Result, error) {
	e.asked <- r.Input.Prompt
	text := <-e.next
	return engine.Result{Text: text}, sink(runlog.Event{Type: runlog.Text, Text: text})
}

func newAsking() asking { return asking{asked: make(chan string), next: make(chan string)} }

// says checks that a prompt has some texts, and not others.
func says(t *testing.T, prompt string, with, without []string) {
	t.Helper()
	for _, text := range with {
		if !strings.Contains(prompt, text) {
			t.Errorf("%q is not asked: %q", text, prompt)
		}
	}
	for _, text := range without {
		if strings.Contains(prompt, text) {
			t.Errorf("%q is asked: %q", text, prompt)
		}
	}
}

// TestPlainChanged: of the owner's messages that wait, one that is edited is answered in its new form, with what it replies to, and one that
// is deleted is not answered. The message that is being answered stays as it is.
func TestPlainChanged(t *testing.T) {
	e := newAsking()
	d := newDesk(t, messenger.Able{Text: 300}, e)
	d.listen()
	edited := func(id, user, text string) {
		d.Edited(d.heard, &messenger.Message{ID: id, Channel: direct, User: user, Direct: true, Text: text})
	}
	d.says("one", "<first>", "")
	<-e.asked
	d.says("two", "<second>", "")
	d.says("three", "<third>", "")
	d.Hear(d.heard, &messenger.Message{
		ID: "four", Channel: direct, User: theOwner, Direct: true, Text: "<fourth>", ReplyTo: "old", Quoted: &messenger.Quoted{Text: "<quoted>"},
	})
	edited("one", theOwner, "<first, late>")
	edited("two", "somebody", "<second, forged>")
	edited("two", theOwner, "<second, new>")
	edited("two", theOwner, "")
	edited("four", theOwner, "<fourth, new>")
	edited("five", theOwner, "<fifth>")
	for _, id := range []string{"one", "three", "five"} {
		d.Deleted(d.heard, direct, id)
	}
	d.Deleted(d.heard, "elsewhere", "two")
	d.lanes.wait()
	d.Listener.heard.mu.Lock()
	if messages, changes := len(d.Listener.heard.byID), len(d.Listener.heard.changes); messages+changes > 0 {
		t.Errorf("%d messages and %d changes are kept", messages, changes)
	}
	d.Listener.heard.mu.Unlock()
	e.next <- "One."
	says(t, <-e.asked, []string{"<second, new>", "<fourth, new>", "<quoted>"},
		[]string{"<first", "forged", "<second>", "<third", "<fourth>", "<fifth"})
	e.next <- "Two."
	d.until(func() bool {
		return slices.ContainsFunc(d.sent, func(o messenger.Outgoing) bool { return o.Text == "Two." })
	})
	d.says("three", "<third>", "") // it is not answered when it comes again
	d.stop()
	if open := d.handled.open(); len(open) > 0 {
		t.Errorf("open: %v", open)
	}
	left, err := d.runner.Queue.Contents()
	if err != nil || len(left.Waiting)+len(left.Running)+len(left.CutOff) > 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// TestPlainChangedWhileItComesAgain: messages in the queue are edited and deleted while each waits in the lane too, because it was read from
// the history before its event's turn came.
func TestPlainChangedWhileItComesAgain(t *testing.T) {
	e := newAsking()
	d := newDesk(t, messenger.Able{Text: 300}, e)
	d.listen()
	d.says("one", "<first>", "")
	<-e.asked
	d.says("two", "<second>", "")
	d.says("three", "<third>", "")
	d.lanes.wait()
	release := make(chan struct{})
	d.lanes.do(direct, func() { <-release })
	d.says("two", "<second>", "")
	d.says("three", "<third>", "")
	d.Edited(d.heard, &messenger.Message{ID: "two", Channel: direct, User: theOwner, Direct: true, Text: "<second, new>"})
	d.Deleted(d.heard, direct, "three")
	close(release)
	d.lanes.wait()
	e.next <- "One."
	says(t, <-e.asked, []string{"<second, new>"}, []string{"<second>", "<third>"})
	e.next <- "Two."
	d.stop()
	if open := d.handled.open(); len(open) > 0 {
		t.Errorf("open: %v", open)
	}
}

// TestPlainDeletedBehindAnother: a message that waits for another process is deleted, and the line that says that it waits goes.
func TestPlainDeletedBehindAnother(t *testing.T) {
	d := newDesk(t, messenger.Able{Text: 300, Edits: 5, Span: time.Second}, runtest.Plays(nil, runlog.Event{Type: runlog.Text, Text: "Hello."}))
	d.deleted = []string{}
	before, _, err := d.runner.Queue.Add(t.Context(), queue.Message{Text: "of another process"})
	do(t, err)
	d.listen()
	d.says("one", "<first>", "")
	if got := d.texts(1); got[0] != "queued: one message is before it" {
		t.Errorf("said %q", got)
	}
	d.Deleted(d.heard, direct, "one")
	d.lanes.wait()
	do(t, before.Remove())
	d.until(func() bool { return len(d.deleted) == 1 })
	d.says("two", "<second>", "")
	d.until(func() bool { return len(d.sent) == 2 && d.sent[1].Text == "Hello." })
	d.stop()
	if d.sent[1].ReplyTo != "two" || !slices.Equal(d.deleted, d.ids[:1]) {
		t.Errorf("said %+v, deleted %q", d.sent, d.deleted)
	}
}

// TestPlainDeletedBeforeAnother: of two messages whose turn is next, the first is deleted. The answer is a reply to the second.
func TestPlainDeletedBeforeAnother(t *testing.T) {
	e := newAsking()
	d := newDesk(t, messenger.Able{Text: 300, Edits: 5, Span: time.Second, Reactions: true}, e)
	d.deleted = []string{}
	d.listen()
	d.says("zero", "<zero>", "")
	<-e.asked
	before, _, err := d.runner.Queue.Add(t.Context(), queue.Message{Text: "of another process"})
	do(t, err)
	d.says("one", "<first>", "")
	d.says("two", "<second>", "")
	d.lanes.wait()
	e.next <- "Zero."
	place := -1
	d.until(func() bool { // they wait for the other process
		place = slices.IndexFunc(d.sent, func(o messenger.Outgoing) bool { return o.ReplyTo == "one" })
		return place >= 0
	})
	d.Deleted(d.heard, direct, "one")
	d.lanes.wait()
	do(t, before.Remove())
	says(t, <-e.asked, []string{"<second>"}, []string{"<first>"})
	e.next <- "Two."
	d.until(func() bool {
		return slices.ContainsFunc(d.sent, func(o messenger.Outgoing) bool { return strings.Contains(o.Text, "Two.") && o.ReplyTo == "two" })
	})
	d.stop()
	if !slices.Equal(d.deleted, d.ids[place:place+1]) || len(d.handled.unfinished("one")) > 0 {
		t.Errorf("deleted %q of %+v", d.deleted, d.sent)
	}
}

// TestPlainGuestsChange: the messages of guests that wait for the channel's turn change and go, too, at the hand of their authors.
func TestPlainGuestsChange(t *testing.T) {
	e := newAsking()
	d := newDesk(t, messenger.Able{Text: 300}, e)
	d.listen()
	hear := func(id, text string) {
		d.Hear(d.heard, &messenger.Message{ID: id, Channel: "room", User: "eve", Name: "Eve", Addressed: true, Text: text})
	}
	hear("one", "<first>")
	<-e.asked
	hear("two", "<second>")
	hear("three", "<third>")
	hear("four", "<fourth>")
	d.Edited(d.heard, &messenger.Message{ID: "two", Channel: "room", User: "mallory", Text: "<forged>"})
	d.Edited(d.heard, &messenger.Message{ID: "four", Channel: "room", User: "eve", Text: "<fourth, new>"})
	d.Deleted(d.heard, "elsewhere", "two")
	d.Deleted(d.heard, "room", "three")
	e.next <- "One."
	says(t, <-e.asked, []string{"<second>"}, []string{"<third>", "<forged>"})
	e.next <- "Two."
	says(t, <-e.asked, []string{"Eve: <fourth, new>"}, []string{"<third>"})
	e.next <- "Four."
	d.stop()
	if len(d.sent) != 3 || !d.handled.has("room", "three") {
		t.Errorf("said %+v", d.sent)
	}
}

// TestPlainChangedInHistory: messages of guests that are read from the history change and go while an earlier one is answered, whether their
// events wait, too, or not.
func TestPlainChangedInHistory(t *testing.T) {
	for _, waits := range []bool{false, true} {
		e := newAsking()
		d := newDesk(t, messenger.Able{Text: 300, History: true}, e)
		said := func(id, text string) *messenger.Message {
			return &messenger.Message{ID: id, Channel: "room", User: "eve", Name: "Eve", Addressed: true, Placed: true, Text: text}
		}
		d.past = func(_, after string) []*messenger.Message {
			if after != "zero" {
				return nil
			}
			return []*messenger.Message{said("one", "<first>"), said("two", "<second>"), said("three", "<third>")}
		}
		d.listen()
		do(t, d.handled.begin("room", "zero"))
		d.CatchUp(d.heard)
		<-e.asked
		if waits {
			for _, m := range d.past("room", "zero") {
				d.Hear(d.heard, m)
			}
		}
		d.Deleted(d.heard, "room", "two")
		d.Edited(d.heard, said("three", "<third, new>"))
		e.next <- "One."
		says(t, <-e.asked, []string{"Eve: <third, new>"}, []string{"<second>", "<third>"})
		e.next <- "Three."
		d.stop()
		if open := d.handled.open(); len(d.sent) != 2 || len(open) > 0 {
			t.Errorf("said %+v, open %v", d.sent, open)
		}
	}
}

// TestPlainChangedWhileAway: messages that wait when the connection is lost are answered as the history has them after the next connection.
func TestPlainChangedWhileAway(t *testing.T) {
	e := newAsking()
	d := newDesk(t, messenger.Able{Text: 300, History: true}, e)
	said := func(id, text string) *messenger.Message {
		return &messenger.Message{ID: id, Channel: "room", User: "eve", Name: "Eve", Addressed: true, Placed: true, Text: text}
	}
	d.past = func(_, after string) []*messenger.Message {
		if after != "one" {
			return nil
		}
		return []*messenger.Message{said("three", "<third, new>"), said("four", "<fourth>")}
	}
	d.listen()
	do(t, d.handled.begin("room", "zero"))
	d.Hear(d.heard, said("one", "<first>"))
	<-e.asked
	d.Hear(d.heard, said("two", "<second>"))
	d.Hear(d.heard, said("three", "<third>"))
	d.CatchUp(d.heard)
	e.next <- "One."
	says(t, <-e.asked, []string{"<third, new>"}, []string{"<second>", "<third>"})
	e.next <- "Three."
	says(t, <-e.asked, []string{"<fourth>"}, []string{"<second>", "<third>"})
	e.next <- "Four."
	d.stop()
	if open := d.handled.open(); len(d.sent) != 3 || len(open) > 0 {
		t.Errorf("said %+v, open %v", d.sent, open)
	}
}

// TestPlainChangedDuringDownload: messages change and go while their files are downloaded.
func TestPlainChangedDuringDownload(t *testing.T) {
	for _, m := range []messenger.Message{{Channel: direct, User: theOwner, Direct: true}, {Channel: "room", User: "eve", Addressed: true}} {
		e := newAsking()
		d := newDesk(t, messenger.Able{Text: 300}, e)
		begun, fetched := make(chan bool), make(chan bool)
		d.fetch = func(context.Context, string) ([]byte, error) {
			begun <- true
			<-fetched
			return []byte("x"), nil
		}
		d.listen()
		for _, id := range []string{"one", "two"} {
			m.ID, m.Text, m.Files = id, "<"+id+">", []messenger.Received{{ID: id, Name: "a.txt"}}
			heard := m
			d.Hear(d.heard, &heard)
		}
		<-begun
		d.Deleted(d.heard, m.Channel, "one")
		fetched <- true
		<-begun
		m.Text = "<two, new>"
		d.Edited(d.heard, &m)
		fetched <- true
		says(t, <-e.asked, []string{"<two, new>"}, []string{"<one>", "<two>"})
		e.next <- "Two."
		d.stop()
		if open := d.handled.open(); len(d.sent) != 1 || len(open) > 0 || !d.handled.has(m.Channel, "one") {
			t.Errorf("%s: said %+v, open %v", m.Channel, d.sent, open)
		}
	}
}

// TestPlainChangedBesideDownload: messages in the queue change and go while the file of a later one is downloaded.
func TestPlainChangedBesideDownload(t *testing.T) {
	e := newAsking()
	d := newDesk(t, messenger.Able{Text: 300}, e)
	begun, fetched := make(chan bool), make(chan bool)
	d.fetch = func(context.Context, string) ([]byte, error) {
		close(begun)
		<-fetched
		return []byte("x"), nil
	}
	d.listen()
	d.says("one", "<first>", "")
	<-e.asked
	d.says("two", "<second>", "")
	d.says("three", "<third>", "")
	d.Hear(d.heard, &messenger.Message{
		ID: "four", Channel: direct, User: theOwner, Direct: true, Text: "<fourth>", Files: []messenger.Received{{ID: "f", Name: "a.txt"}},
	})
	<-begun
	d.Edited(d.heard, &messenger.Message{ID: "two", Channel: direct, User: theOwner, Direct: true, Text: "<second, new>"})
	d.Deleted(d.heard, direct, "three")
	applied := make(chan bool)
	d.lanes.do(laneOfChanges(direct), func() { close(applied) })
	<-applied
	e.next <- "One."
	says(t, <-e.asked, []string{"<second, new>"}, []string{"<second>", "<third>"})
	close(fetched)
	e.next <- "Two."
	says(t, <-e.asked, []string{"<fourth>"}, []string{"<third>"})
	e.next <- "Four."
	d.stop()
}

// TestPlainChangedTwice: of two edits, the earlier one is not written over the later one, at any time.
func TestPlainChangedTwice(t *testing.T) {
	e := newAsking()
	d := newDesk(t, messenger.Able{Text: 300}, e)
	before, _, err := d.runner.Queue.Add(t.Context(), queue.Message{Text: "of another process"})
	do(t, err)
	d.listen()
	edited := func(text string) {
		d.Edited(d.heard, &messenger.Message{ID: "one", Channel: direct, User: theOwner, Direct: true, Text: text})
	}
	release, asked := make(chan struct{}), make(chan string, 1)
	d.lanes.do(direct, func() { <-release })
	d.says("one", "<first>", "")
	edited("<second>")
	d.lanes.do(direct, func() { // between the edits, the message is next
		do(t, before.Remove())
		asked <- <-e.asked
	})
	edited("<third>")
	close(release)
	says(t, <-asked, []string{"<third>"}, []string{"<first>", "<second>"})
	e.next <- "One."
	d.stop()
}

// TestHeardCompare: a message that waited before the history was read is deleted if the history has a later one and not this.
func TestHeardCompare(t *testing.T) {
	t.Parallel()
	var h heard
	hear := func(ids ...string) {
		for _, id := range ids {
			h.put(&messenger.Message{ID: id, Channel: map[bool]string{true: "B", false: "A"}[id == "elsewhere"]})
		}
	}
	hear("here", "gone", "there", "elsewhere", "newest", "here")
	waited := h.waiting("A")
	hear("after", "there")
	h.compare(waited, map[string]bool{"there": true, "here": true})
	for id, want := range map[string]bool{"here": false, "gone": true, "there": false, "elsewhere": false, "newest": false, "after": false} {
		if _, deleted := h.next(&messenger.Message{ID: id}); deleted != want {
			t.Errorf("%s: deleted %v, want %v", id, deleted, want)
		}
	}
	if len(h.order) > 0 || len(h.byID) > 0 {
		t.Errorf("it keeps %v, %v", h.order, h.byID)
	}
}
