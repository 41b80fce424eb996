package turn

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// TestReplies: a reply to a message of a background run opens a fork of the run's session, of the routine's as it is now, or of main if that
// has expired; every other reply quotes the message.
func TestReplies(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		sent       bool // the message is noted with its session
		persistent string
		foreground bool
		open       bool          // a fork is open
		age        time.Duration // of the message
		parent     string        // of the fork; "": there is none
		branches   bool          // the fork branches the run
		quoted     bool          // in the message
	}{
		"of its run":                {sent: true, parent: "s", branches: true},
		"of a routine":              {sent: true, persistent: "now", parent: "now", branches: true},
		"expired":                   {sent: true, age: session.ReplyLimit + time.Hour, parent: "main"},
		"expired, without a note":   {age: session.ReplyLimit + time.Hour, parent: "main"},
		"in an open fork":           {sent: true, open: true, quoted: true},
		"of a foreground run":       {foreground: true, quoted: true},
		"of one that lost its note": {quoted: true},
	} {
		r := runtest.New(t, runtest.Answering{Asked: new([]engine.Request)})
		sent := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
		now := sent
		r.Disk.Now = func() time.Time { return now }
		r.Sessions.Disk.Now, r.Runs.Disk.Now = r.Disk.Now, r.Disk.Now
		id, err := runlog.NewID(now, r.Random)
		if err != nil {
			t.Fatal(err)
		}
		begun, err := r.Runs.Open(runlog.Record{
			ID: id, Started: now, Engine: "costly", Foreground: c.foreground, Persistent: c.persistent != "", Subject: runlog.Subject{Job: "a", Name: "a"},
		})
		if err == nil {
			err = errors.Join(begun.Event(t.Context(), runlog.Event{Type: runlog.Session, Session: "s"}),
				begun.Event(t.Context(), runlog.Event{Type: runlog.Ping, Text: "The kettle boils."}),
				begun.Update(func(r *runlog.Record) { r.SessionAfter = "s" }), begun.Finish(runlog.OK, ""), r.Sessions.SetMain("main"))
		}
		if c.sent {
			err = errors.Join(err, r.Sessions.Sent(t.Context(), session.Message{MessageID: session.MessageID(id, 1), ForkSessionID: "s"}))
		}
		if c.persistent != "" {
			err = errors.Join(err, r.Sessions.SetRoutine("a", c.persistent))
		}
		if c.open {
			err = errors.Join(err, r.Sessions.OpenFork(t.Context(), session.Fork{ID: "other", Begun: now, Last: now}))
		}
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(c.age)
		m, err := Replies{r}.Replying(t.Context(), session.MessageID(id, 1), Message{Text: "Which?"}, Options{})
		if quoted := strings.Contains(m.Text, "The kettle boils."); err != nil || quoted != c.quoted || !strings.HasSuffix(m.Text, "Which?") {
			t.Errorf("%s: %q, %v", what, m.Text, err)
		}
		f, open, err := r.Sessions.Fork(t.Context())
		if err != nil || open != (c.parent != "" || c.open) || f.Parent != c.parent || (f.Run == id) != c.branches {
			t.Errorf("%s: open %v, %+v, %v", what, open, f, err)
		}
		if c.parent != "" && (!strings.Contains(f.Quote, "The kettle boils.") || !f.Sent.Equal(sent)) {
			t.Errorf("%s: quotes %q of %v", what, f.Quote, f.Sent)
		}
		for _, unknown := range []string{session.MessageID(id, 2), session.MessageID(id, 0), "none"} {
			var none *plaintext.Unknown
			if _, err := (Replies{r}).Replying(t.Context(), unknown, Message{Text: "Which?"}, Options{}); !errors.As(err, &none) {
				t.Errorf("%s: a reply to %s: %v", what, unknown, err)
			}
		}
	}
}
