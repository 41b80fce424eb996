package runlog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"
)

// Each goroutine stands for a process of its own: it opens the run by its id.
func TestDecideIsAtomic(t *testing.T) {
	d := newDesk(t)
	id := d.open(Record{}).ID
	errSent := errors.New("sent already")
	var sent, refused atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			r, err := d.At(id)
			if err != nil {
				t.Error(err)
				return
			}
			err = r.Decide(context.Background(), func(s Standing) (Event, error) {
				time.Sleep(5 * time.Millisecond) // for the others to come in between
				if s.Pings > 0 {
					return Event{Type: Ping}, errSent
				}
				return Event{Type: Ping}, nil
			})
			switch {
			case err == nil:
				sent.Add(1)
			case errors.Is(err, errSent):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if s, err := d.Standing(id); sent.Load() != 1 || refused.Load() != 7 || s.Pings != 1 || err != nil {
		t.Errorf("sent %d, refused %d, standing %+v, %v", sent.Load(), refused.Load(), s, err)
	}
}

func TestEventsOfManyProcesses(t *testing.T) {
	d := newDesk(t)
	id := d.open(Record{}).ID
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			r, err := d.At(id)
			for range 3 {
				if err == nil {
					err = r.Event(context.Background(), Event{Type: Report, Text: strings.Repeat("x", 3*large/2)})
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	files := map[string]bool{}
	events, bad := d.events(id)
	for _, e := range events {
		files[e.File] = true
	}
	if len(events) != 24 || len(files) != 24 || bad != 0 {
		t.Errorf("%d events in %d files, %d bad", len(events), len(files), bad)
	}
}

func TestFinish(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{Subject: Subject{Job: "a1"}, SessionBefore: "s-0"})
	d.event(r,
		Event{Type: Session, Session: "s-1"},
		Event{Type: UsageEvent, Usage: &Usage{In: 1, Out: 2, CacheRead: 3, CacheWrite: 4}, Cost: 0.25},
		Event{Type: Ping}, Event{Type: PingRefused}, Event{Type: Ping},
		Event{Type: Report}, Event{Type: Report},
		Event{Type: Result, Text: strings.Repeat("x", large)},
		Event{Type: UsageEvent, Cost: 0.5},
		Event{Type: UsageEvent, Usage: &Usage{In: 10, Out: 20, CacheRead: 30, CacheWrite: 40}},
		Event{Type: Compacted, Session: "s-2"}, Event{Type: Compacted},
		Event{Type: Result},
	)
	if err := r.Conclude(Failed, "broken"); err != nil {
		t.Fatal(err)
	}
	if r.Outcome != Failed || r.Turns != 2 || r.Done() {
		t.Errorf("concluded %+v", r.Record)
	}
	if got := d.load(r.ID); got.Outcome != "" || got.Done() || got.Turns != 0 {
		t.Errorf("on disk before the end: %+v", got)
	}
	d.event(r, Event{Type: Delivered})
	d.now = d.now.Add(time.Minute)
	if err := r.Finish(Unreported, "silent"); err != nil {
		t.Fatal(err)
	}
	got := d.load(r.ID)
	if !got.Done() || got.Finished.Format(time.RFC3339) != "2026-03-02T10:01:00+01:00" {
		t.Errorf("finished %v", got.Finished)
	}
	if got.Text != strings.Repeat("x", large) {
		t.Errorf("final text of %d bytes", len(got.Text))
	}
	got.Text, got.Started, got.Finished = "", time.Time{}, nil
	want := Record{
		ID: r.ID, Subject: Subject{Job: "a1"}, Outcome: Unreported, Error: "silent", SessionBefore: "s-0", SessionAfter: "s-2",
		Turns: 2, Pings: 1, Reports: 2, Compactions: 2, Requests: 2, Compaction: CompactionDone, Usage: Usage{In: 11, Out: 22, CacheRead: 33, CacheWrite: 44}, Cost: 0.75, Assumed: 0.5,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// run.json stays small, whatever an engine printed; the events have all of it.
func TestFinishBoundsTheRecord(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{})
	text, reason := strings.Repeat("\u00e9", 1<<20), strings.Repeat("x", 1<<20)
	d.event(r, Event{Type: Result, Text: text})
	if err := r.Finish(Failed, reason); err != nil {
		t.Fatal(err)
	}
	got := d.load(r.ID)
	if len(got.Text) > 1<<20+100 || !strings.HasSuffix(got.Text, "\u00e9\n[1048576 bytes omitted]") || !utf8.ValidString(got.Text) {
		t.Errorf("a final text of %d bytes: …%q", len(got.Text), got.Text[len(got.Text)-40:])
	}
	if len(got.Error) > 5000 || !strings.HasSuffix(got.Error, "x\n[1044480 bytes omitted]") {
		t.Errorf("an error of %d bytes", len(got.Error))
	}
	if events, _ := d.events(r.ID); len(events) != 1 || events[0].Text != text {
		t.Error("the event is not whole")
	}
}

func TestClose(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{})
	d.event(r, Event{Type: Text, Text: "so far"}, Event{Type: Ping})
	d.now = d.now.Add(time.Hour)
	if changed, err := d.Close(r.ID); !changed || err != nil {
		t.Fatalf("%v, %v", changed, err)
	}
	closed := d.load(r.ID)
	if closed.Outcome != Interrupted || closed.Error == "" || !closed.Finished.Equal(d.now.Add(-time.Hour)) || closed.Pings != 1 {
		t.Errorf("%+v", closed)
	}
	d.now = d.now.Add(time.Hour)
	if changed, err := d.Close(r.ID); changed || err != nil {
		t.Errorf("a second time: %v, %v", changed, err)
	}
	if again := d.load(r.ID); !again.Finished.Equal(*closed.Finished) {
		t.Errorf("a finished record was changed: %+v", again)
	}
	if changed, err := d.Close("20200101T000000.000Z-000000"); changed || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such run: %v, %v", changed, err)
	}
}

func TestCloseCannotWrite(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{})
	if err := os.Mkdir(d.Home.Run(r.ID, "events.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if changed, err := d.Close(r.ID); changed || err == nil {
		t.Errorf("%v, %v", changed, err)
	}
	if _, err := d.Standing(r.ID); err == nil {
		t.Error("what cannot be read has a standing")
	}
	never := func(Standing) (Event, error) {
		t.Error("decided without knowing")
		return Event{}, nil
	}
	if err := r.Decide(context.Background(), never); err == nil {
		t.Error("no error")
	}
}

func TestShownUntil(t *testing.T) {
	shown := start.Add(-time.Hour)
	for _, tc := range []struct {
		turns int
		want  time.Time
	}{{0, shown}, {1, start}, {3, start}} {
		if got := (Record{Started: start, Shown: shown, Turns: tc.turns}).ShownUntil(); !got.Equal(tc.want) {
			t.Errorf("%d turns: %v, want %v", tc.turns, got, tc.want)
		}
	}
}
