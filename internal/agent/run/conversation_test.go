package run_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

// TestFurtherConversation runs a conversation of a type that the program does not have: with history, updates, record, delivery,
// and a reply that is found by the id of the message.
func TestFurtherConversation(t *testing.T) {
	t.Parallel()
	var asked []engine.Request
	r := runtest.New(t, runtest.Answering{Asked: &asked})
	b, w := board{dir: r.Home.State("boards"), topic: "tea"}, &wall{}
	if err := r.Updates.Add(t.Context(), "The kettle boils.", "x"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"Which tea?", "And milk?"} {
		if _, err := turn.New(r).Run(t.Context(), b.post(text, w), nil); err != nil {
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
