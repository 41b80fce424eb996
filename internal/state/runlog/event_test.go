package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

func (d *desk) events(id string) (events []Event, bad int) {
	d.t.Helper()
	for e, err := range d.Events(id, &bad) {
		if err != nil {
			d.t.Fatal(err)
		}
		events = append(events, e)
	}
	return events, bad
}

func TestEvents(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{})
	if events, bad := d.events(r.ID); events != nil || bad != 0 {
		t.Errorf("before the first: %v, %d", events, bad)
	}
	earlier := start.Add(-time.Hour)
	want := []Event{
		{At: earlier, Type: Text, Text: "a <b> & \u2028\n c"},
		{Type: ToolUse, Tool: "Read", ToolID: "1", Input: json.RawMessage(`{"a":[1,"x"]}`)},
		{Type: ToolResult, Tool: "Read", ToolID: "1", Text: "no", IsError: true},
		{Type: UsageEvent, Usage: &Usage{In: 1, Out: 2, CacheRead: 3, CacheWrite: 4}, Cost: 0.25},
		{Type: Compacted, Session: "b", Parent: "a", Before: 9, After: 3},
		{Type: UpdatesPopped, Count: 2},
	}
	d.event(r, want...)
	for i := range want {
		if want[i].At.IsZero() {
			want[i].At = start
		}
	}
	events, bad := d.events(r.ID)
	for i := range events {
		if _, offset := events[i].At.Zone(); offset != 3600 {
			t.Errorf("event %d: %v is not in the configured zone", i, events[i].At)
		}
		events[i].At = events[i].At.UTC()
	}
	if !reflect.DeepEqual(events, want) || bad != 0 {
		t.Errorf("got %d bad and\n%+v\nwant\n%+v", bad, events, want)
	}
	for range d.Events(r.ID, nil) {
		break
	}
}

func TestLargeEvents(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{})
	text := strings.Repeat("x", large)
	input := json.RawMessage(`"` + strings.Repeat("é", large/2) + `"`)
	want := []Event{
		{Type: Text, Text: text[1:]},
		{Type: Text, Text: text},
		{Type: ToolUse, Input: input, Text: "why"},
		{Type: ToolResult, Text: text + "1", Tool: "Read", Input: json.RawMessage("1")},
		{Type: ToolResult, Text: text + "2"},
	}
	d.event(r, want...)
	got, bad := d.events(r.ID)
	if len(got) != len(want) || bad != 0 {
		t.Fatalf("%d events, %d bad", len(got), bad)
	}
	for i, file := range []string{"", "text-1.txt", "tool-use-1.txt", "tool-result-1.txt", "tool-result-2.txt"} {
		if got[i].File != file || got[i].Text != want[i].Text || !bytes.Equal(got[i].Input, want[i].Input) || got[i].Tool != want[i].Tool {
			t.Errorf("event %d comes from %q, %d and %d bytes", i, got[i].File, len(got[i].Text), len(got[i].Input))
		}
	}
	log, err := os.ReadFile(d.Home.Run(r.ID, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range bytes.Split(log, []byte("\n"))[1:] {
		if len(line) > 300 {
			t.Errorf("line %d has %d bytes", i+2, len(line))
		}
	}
	if data, err := os.ReadFile(d.Home.Run(r.ID, "tool-use-1.txt")); !bytes.Equal(data, input) || err != nil {
		t.Errorf("the file has %d bytes, %v", len(data), err)
	}
}

// A deleted file affects only its own event.
func TestLargeEventGone(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{})
	huge := strings.Repeat("x", large)
	d.event(r, Event{Type: Text, Text: huge}, Event{Type: Report}, Event{Type: Result, Text: huge})
	for _, name := range []string{"text-1.txt", "result-1.txt"} {
		if err := os.Remove(d.Home.Run(r.ID, name)); err != nil {
			t.Fatal(err)
		}
	}
	var faults []error
	for _, err := range d.Events(r.ID, nil) {
		faults = append(faults, err)
	}
	if len(faults) != 3 || !errors.Is(faults[0], fs.ErrNotExist) || faults[1] != nil {
		t.Errorf("%v", faults)
	}
	if s, err := r.Standing(); err != nil || s.Reports != 1 || !s.Started {
		t.Errorf("standing %+v, %v", s, err)
	}
	if err := r.Finish(OK, ""); err != nil {
		t.Errorf("the run cannot end: %v", err)
	}
	if got := d.load(r.ID); !got.Done() || got.Reports != 1 || got.Turns != 1 {
		t.Errorf("%+v", got)
	}
}

// No event leads to a file outside the run's directory.
func TestFileOfAnotherPlace(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{})
	d.write(r.ID, "run.json", "secret")
	d.write(r.ID, "events.jsonl", `{"type":"text","file":"../../../secret"}`+"\n")
	if err := os.WriteFile(d.Home.Path("secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for e, err := range d.Events(r.ID, nil) {
		if err == nil || e.Text != "" {
			t.Errorf("%q, %v", e.Text, err)
		}
	}
}

func TestTornLine(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{})
	d.event(r, Event{Type: Ping})
	f, err := os.OpenFile(d.Home.Run(r.ID, "events.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("not json\n" + `{"at":"2026-03-02T09:00:00Z","type":"pi`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d.event(r, Event{Type: Report})
	events, bad := d.events(r.ID)
	if len(events) != 2 || events[1].Type != Report || bad != 2 {
		t.Errorf("%d bad, %+v", bad, events)
	}
	if s, err := r.Standing(); err != nil || s.Pings != 1 || s.Reports != 1 {
		t.Errorf("standing %+v, %v", s, err)
	}
}

func TestStanding(t *testing.T) {
	wish := func(text string) Event { return Event{Type: CompactWish, Text: text} }
	of := func(kinds ...eventType) (events []Event) {
		for _, k := range kinds {
			events = append(events, Event{Type: k, Text: "x"})
		}
		return events
	}
	huge := strings.Repeat("keep ", large)
	session := func(kind eventType, id, parent string) Event {
		return Event{Type: kind, Session: id, Parent: parent}
	}
	follow := func(text string) Event { return Event{Type: FollowUp, Text: text} }
	nine := time.Date(2026, 3, 7, 9, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		events []Event
		want   Standing
	}{
		"nothing":      {nil, Standing{}},
		"no answer":    {of(Session, ToolResult, UsageEvent, ErrorEvent, Result, Retry, SessionLost, Refusal, "new kind"), Standing{}},
		"text":         {of(Text), Standing{Started: true}},
		"thinking":     {of(Thinking), Standing{Started: true}},
		"tool":         {of(ToolUse), Standing{Started: true, Effects: true}},
		"ping":         {of(Ping), Standing{Pings: 1, Unreported: 1, Messages: 1}},
		"given back":   {of(Ping, PingRefused), Standing{Messages: 1}},
		"once more":    {of(Ping, PingRefused, Ping), Standing{Pings: 1, Unreported: 1, Messages: 2}},
		"reported":     {of(Ping, Report), Standing{Pings: 1, Reports: 1, Messages: 1}},
		"too early":    {of(Report, Ping), Standing{Pings: 1, Unreported: 1, Reports: 1, Messages: 1}},
		"for nothing":  {of(Ping, Report, PingRefused), Standing{Reports: 1, Messages: 1}},
		"numbered":     {of(Ping, Message), Standing{Pings: 1, Unreported: 1, Messages: 2}},
		"delivered":    {of(Message, Delivered), Standing{Messages: 1}},
		"reports":      {of(Report, Report), Standing{Reports: 2}},
		"nudges":       {of(Nudge, Nudge), Standing{Nudges: 2}},
		"popped":       {[]Event{{Type: UpdatesPopped, Count: 3}, {Type: UpdatesPopped, Count: 1}}, Standing{Popped: 4}},
		"wish":         {[]Event{wish("a"), wish("b")}, Standing{Wish: "b", Wished: true}},
		"wish granted": {append([]Event{wish("a")}, of(Compacted)...), Standing{Compactions: 1}},
		"wished again": {append(of(Compacted), wish("a")), Standing{Compactions: 1, Wish: "a", Wished: true}},
		"session":      {[]Event{session(Session, "a", ""), session(Session, "b", "a"), {Type: Session}}, Standing{Session: "b"}},
		"of others":    {[]Event{session(Session, "a", ""), session(Ping, "b", ""), session(SessionLost, "c", "")}, Standing{Session: "a", Pings: 1, Unreported: 1, Messages: 1}},
		"compacted":    {[]Event{session(Session, "a", ""), session(Compacted, "b", "a")}, Standing{Session: "b", Compactions: 1}},
		"by itself":    {[]Event{wish("w"), session(Compacted, "a", "a")}, Standing{Session: "a", Compactions: 1, Wish: "w", Wished: true}},
		"follow-up":    {[]Event{follow("2026-03-07T08:00:00Z"), follow("2026-03-07T09:00:00Z")}, Standing{FollowUp: nine}},
		"no follow-up": {[]Event{follow("2026-03-07T09:00:00Z"), follow("")}, Standing{}},
		"large wish":   {[]Event{wish(huge)}, Standing{Wish: huge, Wished: true}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			r := d.open(Record{})
			d.event(r, tc.events...)
			if got, err := d.Standing(r.ID); got != tc.want || err != nil {
				t.Errorf("got %.300v, %v", got, err)
			}
		})
	}
}

func TestOwesReport(t *testing.T) {
	for _, tc := range []struct {
		mode                string
		unreported, reports int
		want                bool
	}{
		{"always", 0, 0, true}, {"always", 1, 0, true}, {"always", 0, 1, false}, {"always", 1, 1, false},
		{"on_ping", 0, 0, false}, {"on_ping", 1, 0, true}, {"on_ping", 1, 1, true}, {"on_ping", 0, 1, false},
		{"freely", 0, 0, false}, {"freely", 1, 0, false}, {"freely", 1, 1, false},
		{"blocked", 0, 0, false}, {"blocked", 1, 0, false},
		{"", 0, 0, false}, {"", 1, 0, false},
	} {
		if got := (Standing{Unreported: tc.unreported, Reports: tc.reports}).OwesReport(tc.mode); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}
