package runner

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

// answering answers each turn by the number of the turn, and keeps what it was asked.
type answering struct {
	turn

	asked *[]engine.Request
}

func (e answering) Run(_ context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) (engine.Result, error) {
	*e.asked = append(*e.asked, r)
	answer := strings.Repeat("again ", len(*e.asked)-1) + "done"
	id := r.Session.ID
	if id == "" {
		id = "s-1"
	}
	for _, event := range []runlog.Event{
		{Type: runlog.Session, Session: id}, {Type: runlog.Text, Text: answer}, {Type: runlog.UsageEvent, Usage: &runlog.Usage{Out: 1}},
		{Type: runlog.Result, Text: answer},
	} {
		if err := sink(event); err != nil {
			return engine.Result{}, err
		}
	}
	return engine.Result{Session: id, Text: answer}, nil
}

// TestFurtherConversation runs a conversation of a type that the program does not have: with history, updates, record, delivery,
// and a reply that is found by the id of the message.
func TestFurtherConversation(t *testing.T) {
	t.Parallel()
	var asked []engine.Request
	r := newRunner(t, answering{asked: &asked})
	b, w := board{dir: r.Home.State("boards"), topic: "tea"}, &wall{}
	if err := r.Updates.Add(t.Context(), "The kettle boils.", "x"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"Which tea?", "And milk?"} {
		if _, err := r.Run(t.Context(), b.post(text, w)); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 2 || asked[0].Session.ID != "" || asked[1].Session.ID != "s-1" {
		t.Fatalf("asked %+v", asked)
	}
	for _, want := range []string{"[board:tea] ", "The kettle boils.", "Which tea?"} {
		if !strings.Contains(asked[0].Input.Prompt, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, asked[0].Input.Prompt)
		}
	}
	if len(w.messages) != 2 || w.messages[0].Text != "done" || w.messages[1].Text != "again done" {
		t.Fatalf("delivered %+v", w.messages)
	}
	reply, found, err := r.Sessions.ByMessage(t.Context(), "wall-again done")
	if err != nil || !found || reply.ForkSessionID != "s-1" || reply.Run() != w.messages[1].Run {
		t.Errorf("the reply belongs to %+v, %v, %v", reply, found, err)
	}
	if mine, found, err := r.Sessions.ByMessage(t.Context(), w.messages[0].ID); err != nil || !found || mine.Run() != w.messages[0].Run {
		t.Errorf("the message's own id leads to %+v, %v, %v", mine, found, err)
	}
	record, err := r.Runs.Load(reply.Run())
	if err != nil || record.Mode != "board" || record.Key != "board-tea" || record.Outcome != runlog.OK || record.SessionBefore != "s-1" {
		t.Errorf("%+v, %v", record, err)
	}
	var kinds []string
	for e, err := range r.Sessions.History(nil) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(e.Event)+" "+e.SessionID)
	}
	if !slices.Equal(kinds, []string{"board s-1", "board s-1"}) {
		t.Errorf("the history has %q", kinds)
	}
}
