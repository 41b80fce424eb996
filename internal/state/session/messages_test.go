package session

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// messages are the ids in the file, in its order.
func messages(t *testing.T, b Book) (ids []string) {
	t.Helper()
	var all []Message
	if err := json.Unmarshal([]byte(content(t, b.Home.State("fork_messages.json"))), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		ids = append(ids, m.MessageID)
	}
	return ids
}

func TestSentIsOfTheDesignsForm(t *testing.T) {
	b, warned := newBook(t)
	err := b.Sent(t.Context(), Message{MessageID: "r.1", ForkSessionID: "fork", ParentSessionID: "main", TS: start.AddDate(-1, 0, 0)})
	if err = errors.Join(err, b.Sent(t.Context(), Message{MessageID: "r.2", ForkSessionID: "iso"})); err != nil {
		t.Fatal(err)
	}
	const want = `[
  {
    "message_id": "r.1",
    "fork_session_id": "fork",
    "parent_session_id": "main",
    "ts": "2026-02-24T14:30:00-08:00"
  },
  {
    "message_id": "r.2",
    "fork_session_id": "iso",
    "ts": "2026-02-24T14:30:00-08:00"
  }
]
`
	if got := content(t, b.Home.State("fork_messages.json")); got != want || len(*warned) > 0 {
		t.Errorf("%s\n%s", got, *warned)
	}
	if info, err := os.Stat(b.Home.State("fork_messages.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// A message is kept for ninety days to the nanosecond, so that a late reply is told that it is late, and is gone with the next one
// after that. A clock that was set back costs none.
func TestSentPrunes(t *testing.T) {
	b, _ := newBook(t)
	now := start
	b.Disk.Now = func() time.Time { return now }
	const kept = 90 * 24 * time.Hour
	for _, step := range []struct {
		after time.Duration
		id    string
		want  string
	}{
		{0, "a", "a"}, {time.Hour, "b", "a b"}, {kept - time.Hour, "c", "a b c"}, {1, "d", "b c d"}, {-kept, "e", "b c d e"}, {2*kept + 2*time.Hour, "f", "f"},
	} {
		now = now.Add(step.after)
		if err := b.Sent(t.Context(), Message{MessageID: step.id, ForkSessionID: "s"}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(messages(t, b), " "); got != step.want {
			t.Errorf("after %s: %s, want %s", step.id, got, step.want)
		}
	}
}

// TestMessageID: the id of a message says which of its run it is.
func TestMessageID(t *testing.T) {
	if m := (Message{MessageID: MessageID("20260302T090000.000Z-aaaaaa", 12)}); m.Run() != "20260302T090000.000Z-aaaaaa" || m.Number() != 12 {
		t.Errorf("%+v: %q, %d", m, m.Run(), m.Number())
	}
	for _, id := range []string{"", "r", "r.", "r.x"} {
		if n := (Message{MessageID: id}).Number(); n != 0 {
			t.Errorf("%q: %d", id, n)
		}
	}
}
