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
	if left := len(d.Listener.heard.byID); left > 0 {
		t.Errorf("%d messages are kept", left)
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
		if _, deleted := h.newest(&messenger.Message{ID: id}); deleted != want {
			t.Errorf("%s: deleted %v, want %v", id, deleted, want)
		}
	}
	if len(h.order) > 0 || len(h.byID) > 0 {
		t.Errorf("it keeps %v, %v", h.order, h.byID)
	}
}
