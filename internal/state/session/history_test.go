package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

func history(t *testing.T, b Book) (events []Event, bad int) {
	t.Helper()
	for e, err := range b.History(&bad) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events, bad
}

func TestLogIsOneLineOfTheDesignsForm(t *testing.T) {
	b, _ := newBook(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, e := range []Event{
		{SessionID: "s1", Event: Created},
		{SessionID: "s2", Event: BgFork, Timestamp: at, ParentSessionID: "s1"},
	} {
		if err := b.Log(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"session_id":"s1","event":"created","timestamp":"2026-02-24T14:30:00-08:00","parent_session_id":null}
{"session_id":"s2","event":"bg_fork","timestamp":"2026-01-02T03:04:05Z","parent_session_id":"s1"}
`
	if got := content(t, b.Home.SessionHistory()); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	events, bad := history(t, b)
	if len(events) != 2 || bad != 0 || !events[0].Timestamp.Equal(start) || events[1].ParentSessionID != "s1" {
		t.Errorf("%+v, %d bad", events, bad)
	}
}

func TestEventRoundTrip(t *testing.T) {
	for _, e := range []Event{
		{SessionID: "a", Event: Swapped, Timestamp: start.Add(123456789), ParentSessionID: "b"},
		{SessionID: "a", Event: "restarting", Timestamp: start},
	} {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var got Event
		if err := json.Unmarshal(data, &got); err != nil || got != e {
			t.Errorf("%s: %+v, %v, want %+v", data, got, err, e)
		}
	}
	for _, text := range []string{`{"session_id":5}`, `[]`, `{"session_id":"s","event":"created","timestamp":"today"}`} {
		var e Event
		if err := json.Unmarshal([]byte(text), &e); err == nil {
			t.Errorf("%s was read as %+v", text, e)
		}
	}
}

func TestHistoryToleratesOtherSoftware(t *testing.T) {
	b, _ := newBook(t)
	write(t, b.Home.SessionHistory(), strings.Join([]string{
		`{"session_id": "a", "event": "created", "timestamp": "2026-02-24T14:30:00.123456-08:00", "parent_session_id": null}`,
		`{"session_id":"torn`,
		`{"session_id": "b", "event": "cleared", "timestamp": "2026-02-24T14:30:00.5"}`,
		`{"session_id": "c", "event": "something_new", "timestamp": "2026-02-24T22:30:00Z", "extra": 1}`,
		`{"session_id": "d", "event": "created", "timestamp": "yesterday"}`,
		`{"session_id": "x", "timestamp": "2026-02-24T22:30:00Z"}`,
		``,
		`{"session_id": "e", "event": "swapped", "timestamp": "2026-02-24T22:30:00Z", "parent_session_id": "a"}`,
		`{"session_id": "f", "event": "cre`,
	}, "\n"))
	var got []string
	events, bad := history(t, b)
	for _, e := range events {
		got = append(got, fmt.Sprint(e.SessionID, " ", e.Event, " ", e.Timestamp.UTC().Format("15:04:05.999"), " ", e.ParentSessionID))
	}
	want := "a created 22:30:00.123 |b cleared 22:30:00.5 |c something_new 22:30:00 |e swapped 22:30:00 a"
	if strings.Join(got, "|") != want || bad != 4 {
		t.Errorf("%q, %d bad; want %q, 4 bad", strings.Join(got, "|"), bad, want)
	}
	if err := b.Log(t.Context(), Event{SessionID: "g", Event: Compacted}); err != nil {
		t.Fatal(err)
	}
	if events, bad := history(t, b); len(events) != 5 || bad != 4 {
		t.Errorf("after an append to a torn file: %d events, %d bad", len(events), bad)
	}
	for range b.History(nil) { // a nil counter, and a reader that stops early
		break
	}
}

func TestHistoryYieldsReadErrors(t *testing.T) {
	b, _ := newBook(t)
	if err := os.MkdirAll(b.Home.SessionHistory(), 0o700); err != nil {
		t.Fatal(err)
	}
	var failed error
	for e, err := range b.History(nil) {
		if failed = err; e != (Event{}) {
			t.Errorf("%+v", e)
		}
	}
	if failed == nil {
		t.Error("a folder was read as an empty history")
	}
	_, ok := errors.AsType[*store.NotWritten](b.Log(t.Context(), Event{SessionID: "s", Event: Created}))
	if !ok {
		t.Error("Log: not a NotWritten")
	}
}
