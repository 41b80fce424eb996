package acp

import (
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
)

// TestShorten: a session as long as Full allows is compacted before its turn, also one that the agent is given by quoting.
func TestShorten(t *testing.T) {
	for _, quotes := range []bool{false, true} {
		w := newWorld(t, "sums")
		w.Profile.Quotes = quotes
		first, err := w.ask(engine.Request{}, "cost\nsay "+strings.Repeat("long ", 1000))
		if err != nil {
			t.Fatal(err)
		}
		r := engine.Request{Session: engine.Session{ID: first.Session, Full: engine.Full{Tokens: 1000}}}
		second, err := w.ask(r, "say two")
		if err != nil || second.Session == first.Session || second.Text != "two" || strings.Count(w.told(), "compacted the summary") != 1 || second.Usage.In != 2000 {
			t.Fatalf("quotes: %t: got %+v, %v\n%s", quotes, second, err, w.told())
		}
		r.Session.ID = second.Session
		third, err := w.ask(r, "past")
		if err != nil || third.Session != second.Session || strings.Contains(w.told(), "compacted") || !quotes && third.Text != "Summary of the conversation so far:\n\nthe summary\n\nsay two" {
			t.Errorf("quotes: %t: got %+v, %v\n%s", quotes, third, err, w.told())
		}
		if said, err := w.said(second.Session); err != nil || len(said) > 1000 || !strings.Contains(said, "the summary") || !strings.Contains(said, "say two") {
			t.Errorf("quotes: %t: %v: %.2000s", quotes, err, said)
		}
	}
}

// TestShortenFails: a turn goes on without a compaction that failed, which is tried again after a day or when the session has grown.
func TestShortenFails(t *testing.T) {
	w := newWorld(t)
	first, err := w.ask(engine.Request{}, "cost")
	if err != nil {
		t.Fatal(err)
	}
	r := engine.Request{Session: engine.Session{ID: first.Session, Full: engine.Full{Tokens: 1000}}}
	for i, tried := range []bool{true, false, true} {
		if i == 2 {
			w.Disk = store.Disk{Now: func() time.Time { return time.Now().Add(25 * time.Hour) }}
		}
		again, err := w.ask(r, "say two")
		if err != nil || again.Session != first.Session || again.Text != "two" || strings.Contains(w.told(), "compact_failed") != tried {
			t.Errorf("%d: got %+v, %v\n%s", i, again, err, w.told())
		}
	}
	r.Session.Fork = true
	if branch, err := w.ask(r, "say three"); err != nil || strings.Contains(w.told(), "compact") {
		t.Errorf("got %+v, %v\n%s", branch, err, w.told())
	}
}
