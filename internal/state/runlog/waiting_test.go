package runlog

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/process"
)

// asked is the event of a question, answered that of the answer.
func asked(text string) Event {
	return Event{Type: Ping, Tool: AskOwner, Text: text}
}

// Whether a run asks, and whether it waits if its process dies now.
func TestStandingOfQuestions(t *testing.T) {
	answer := Event{Type: Answered, Text: "red"}
	refused := Event{Type: PingRefused, Tool: AskOwner}
	of := func(kind eventType) Event { return Event{Type: kind} }
	for name, tc := range map[string]struct {
		events   []Event
		question string
		asking   bool
		earlier  int
	}{
		"nothing":         {nil, "", false, 0},
		"a ping":          {[]Event{of(Ping)}, "", false, 0},
		"asked":           {[]Event{asked("Q"), of(Text), of(ToolUse)}, "Q", true, 0},
		"not sent":        {[]Event{asked("Q"), refused}, "", false, 0},
		"another refused": {[]Event{asked("Q"), of(Ping), of(PingRefused)}, "Q", true, 0},
		"handed over":     {[]Event{asked("Q"), answer, of(Session)}, "Q", false, 1},
		"handed over twice": {
			[]Event{asked("Q"), answer, of(Session), answer}, "Q", false, 1,
		},
		"read":        {[]Event{asked("Q"), answer, of(Thinking)}, "", false, 1},
		"asked again": {[]Event{asked("Q"), answer, of(Text), asked("R")}, "R", true, 1},
		"asked at once": { // the event of the use may come late
			[]Event{asked("Q"), answer, asked("R"), of(ToolUse)}, "R", true, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			r := d.open(Record{Process: Process{ID: process.ID{PID: 1 << 30}}})
			d.event(r, tc.events...)
			s, err := r.Standing()
			if s.Question != tc.question || s.Asking() != tc.asking || s.Earlier != tc.earlier || err != nil {
				t.Errorf("question %q, asking %v, earlier %d, %v", s.Question, s.Asking(), s.Earlier, err)
			}
			want := Interrupted
			if tc.question != "" {
				want = Waiting
			}
			if cut := d.CutOff(d.load(r.ID)); cut.Outcome != want || cut.Question != tc.question {
				t.Errorf("as it is shown: %s, %q", cut.Outcome, cut.Question)
			}
			if changed, err := d.Close(r.ID); !changed || err != nil {
				t.Fatal(changed, err)
			}
			if got := d.load(r.ID); got.Outcome != want || got.Question != tc.question || !got.Done() {
				t.Errorf("closed: %s, %q", got.Outcome, got.Question)
			}
		})
	}
}

// A run that finishes its record after a reader has loaded it, and before the reader looks for its process, was not cut off.
func TestFinishedSinceItWasRead(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{Process: Process{ID: process.ID{PID: 1 << 30}}})
	read := d.load(r.ID)
	if err := r.Finish(OK, ""); err != nil {
		t.Fatal(err)
	}
	if got := d.CutOff(read); got.Outcome != OK || got.Error != "" || !got.Done() {
		t.Errorf("%s, %q, finished %v", got.Outcome, got.Error, got.Finished)
	}
}

// A run that was requested to end does not wait.
func TestStoppedDoesNotWait(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{Process: Process{ID: process.ID{PID: 1 << 30}}})
	d.event(r, asked("Q"))
	if err := d.AskStop(r.ID, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Close(r.ID); err != nil || d.load(r.ID).Outcome != Interrupted {
		t.Errorf("%s, %v", d.load(r.ID).Outcome, err)
	}
}

// Only a run that waits is opened again, and whoever saw it in its former process does not end it.
func TestReopen(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{Process: Process{ID: process.ID{PID: 1 << 30}}})
	d.event(r, asked("Q"))
	before := d.load(r.ID)
	if _, err := d.Reopen(t.Context(), r.ID, func(*Record) {}); !errors.Is(err, errNotWaiting) {
		t.Errorf("in progress: %v", err)
	}
	if _, err := d.Close(r.ID); err != nil {
		t.Fatal(err)
	}
	again, err := d.Reopen(t.Context(), r.ID, func(r *Record) { r.PID, r.Continued = 1<<30+1, 1 })
	if got := d.load(r.ID); err != nil || got.Done() || got.Outcome != "" || got.Question != "" || got.PID != 1<<30+1 || got.Account() != r.ID+"+1" {
		t.Fatalf("%+v, %v", got, err)
	}
	if changed, err := d.CloseOf(before); changed || err != nil || d.load(r.ID).Done() {
		t.Errorf("closed by a reader of the past: %v, %v", changed, err)
	}
	if err := again.Prompt(Prompt{{Text: "go on"}}); err != nil {
		t.Fatal(err)
	}
	if err := again.Finish(OK, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Reopen(t.Context(), r.ID, func(*Record) {}); !errors.Is(err, errNotWaiting) {
		t.Errorf("after the end: %v", err)
	}
}

// What was settled before an answer stays as it was, whatever is reserved for the part after it.
func TestBillOfParts(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{Accounted: true, Reserved: 0.5})
	session, usage := Event{Type: Session, Session: "s"}, Event{Type: UsageEvent, Usage: &Usage{}, Cost: 0.2}
	want := func(what string, cost, assumed float64, starts int) {
		t.Helper()
		bill, err := d.Bill(r.Record)
		if diff := bill.Cost - cost; diff > 1e-9 || diff < -1e-9 || bill.Assumed-assumed > 1e-9 || assumed-bill.Assumed > 1e-9 || bill.Starts != starts || err != nil {
			t.Errorf("%s: %+v, %v; want %v, assumed %v, %d starts", what, bill, err, cost, assumed, starts)
		}
	}
	d.event(r, session, usage, session)
	want("an open request", 0.5, 0.3, 2)
	r.Settled, r.Reserved, r.Continued = 0.5, 0.1, 1
	d.event(r, Event{Type: Answered, Reported: 0.5})
	want("handed over", 0.5, 0.3, 0)
	d.event(r, session)
	want("begun", 0.6, 0.4, 1)
	d.event(r, usage)
	want("answered", 0.7, 0.3, 1)
}

// A power failure may take the last events. It frees no money: a run that it ended costs at least what was reserved, and one that had ended
// what its record says.
func TestBillAfterPowerFailure(t *testing.T) {
	for name, test := range map[string]struct {
		boot  string
		ended bool
		want  float64
	}{
		"in progress":                  {"", false, 0.2},
		"ended by the machine":         {"another boot", false, 0.7},
		"ended before":                 {"another boot", true, 0.2},
		"ended before, without events": {"another boot", true, 0.2},
	} {
		d := newDesk(t)
		r := d.open(Record{Accounted: true, Settled: 0.2, Reserved: 0.5, Process: Process{ID: process.ID{PID: 1 << 30, Boot: test.boot}}})
		d.event(r, Event{Type: UsageEvent, Usage: &Usage{}, Cost: 0.2})
		if test.ended {
			r.Boot = "" // this process has ended it
			if err := r.Finish(OK, ""); err != nil {
				t.Fatal(err)
			}
			r.Boot = test.boot
		}
		if strings.Contains(name, "without events") {
			if err := os.Remove(d.Home.Run(r.ID, "events.jsonl")); err != nil {
				t.Fatal(err)
			}
		}
		if bill, err := d.Bill(r.Record); bill.Cost != test.want || err != nil {
			t.Errorf("%s: %+v, %v, want %v", name, bill, err, test.want)
		}
		if test.ended {
			continue
		}
		if _, err := d.Close(r.ID); err != nil {
			t.Fatal(err)
		}
		if got := d.load(r.ID); got.Cost != test.want || math.Abs(got.Assumed-test.want+0.2) > 1e-9 {
			t.Errorf("%s: closed with %v, of which %v are assumed", name, got.Cost, got.Assumed)
		}
	}
}
