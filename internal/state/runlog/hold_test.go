package runlog

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
)

// carried is a run that this process carries out.
func (d *desk) carried() *Run {
	d.t.Helper()
	r := d.open(Record{Process: Process{ID: process.ID{PID: 1 << 30}}})
	held, err := d.Hold(r.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	r.Held = held
	return r
}

// TestClosedByAnother: the process of a run that another process has closed writes nothing more, neither to the record nor to the events,
// and leaves the file of the run to whoever took it.
func TestClosedByAnother(t *testing.T) {
	d := newDesk(t)
	r := d.carried()
	d.event(r, Event{Type: Text, Text: "before"})
	r.Held.guard.Release() // as a network file system does when the lease of a stopped machine runs out
	if changed, err := d.Close(r.ID); !changed || err != nil {
		t.Fatal(changed, err)
	}
	files := func() (text string) {
		for _, name := range []string{"run.json", "events.jsonl", "running"} {
			data, err := os.ReadFile(d.Home.Run(r.ID, name))
			if err != nil {
				t.Fatal(err)
			}
			text += string(data)
		}
		return text
	}
	before := files()
	for name, write := range map[string]func() error{
		"save":   r.Save,
		"update": func() error { return r.Update(func(r *Record) { r.Fault = "x" }) },
		"event":  func() error { return r.Event(t.Context(), Event{Type: Text, Text: "after"}) },
		"decide": func() error {
			return r.Decide(t.Context(), func(Standing) (Event, error) { return Event{Type: Ping, Text: "after"}, nil })
		},
		"finish": func() error { return r.Finish(OK, "") },
		"look":   r.Held.Check,
	} {
		if err := write(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r.Held.Leave(); files() != before {
		t.Errorf("changed:\n%s\nbefore:\n%s", files(), before)
	}
	ends := 0
	for _, err := range d.Ledger.Newest(start.AddDate(0, 0, -1), ended) {
		if ends++; err != nil {
			t.Error(err)
		}
	}
	if ends != 1 {
		t.Errorf("%d facts of an end", ends)
	}
}

// TestFileOfARun: a file that is gone, emptied or another run's ends the run as well. A request to end is none of these.
func TestFileOfARun(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"gone":    os.Remove,
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"another's": func(path string) error {
			return os.WriteFile(path, []byte("20260302T090000.000Z-abcdef 00000001\n"), 0o600)
		},
		"torn": func(path string) error { return os.Truncate(path, 10) },
	} {
		d := newDesk(t)
		r := d.carried()
		if err := d.AskStop(r.ID, "a\nreason"); err != nil {
			t.Fatal(err)
		}
		if why, err := r.Held.Look(); why != "a reason" || err != nil || d.StopReason(r.ID) != "a reason" {
			t.Errorf("%q, %v", why, err)
		}
		if err := d.AskStop(r.ID, "another"); err != nil || d.StopReason(r.ID) != "a reason" {
			t.Errorf("%q, %v", d.StopReason(r.ID), err)
		}
		if err := r.Save(); err != nil {
			t.Error(err)
		}
		if err := change(d.Home.RunLock(r.ID)); err != nil {
			t.Fatal(err)
		}
		if err := r.Held.Check(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHoldAgain: who continues a run has a later generation and no old request, and leaves no file.
func TestHoldAgain(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{Process: Process{ID: process.ID{PID: 1 << 30}}})
	if err := d.AskStop(r.ID, "now"); err != nil { // its process has died
		t.Fatal(err)
	}
	if _, err := d.Close(r.ID); err != nil || d.load(r.ID).Outcome != Interrupted {
		t.Fatal(d.load(r.ID).Outcome, err)
	}
	held, err := d.Hold(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if note := lock.ReadNote(d.Home.RunLock(r.ID)); note != r.ID+" 1772442000000\n" {
		t.Errorf("%q", note)
	}
	if _, err := d.Hold(r.ID); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("held twice: %v", err)
	}
	held.Leave()
	held.Leave()
	if left, err := names(d.Home.Run(r.ID)); err != nil || slices.Contains(left, "running") {
		t.Errorf("%q, %v", left, err)
	}
}

// TestStopBeforeItBegins: a run that was asked to end before its process had its lock finds the request. One that is continued does not find
// a request that came when its last part had ended.
func TestStopBeforeItBegins(t *testing.T) {
	d := newDesk(t)
	begun := d.open(Record{Process: Process{ID: process.ID{PID: 1 << 30}}})
	for id, want := range map[string]string{"20260302T090000.000Z-abcdef": "now", begun.ID: ""} {
		if err := d.AskStop(id, "now"); err != nil {
			t.Fatal(err)
		}
		held, err := d.Hold(id)
		if err != nil {
			t.Fatal(err)
		}
		if stop, err := held.Look(); stop != want || err != nil {
			t.Errorf("%s: asked to end: %q, %v", id, stop, err)
		}
		held.Leave()
	}
}

// TestLeaveOnce: a process that has left a run does nothing to the file of the process that continues it, such as when the answer to a
// question comes while the process that asked it still sends messages.
func TestLeaveOnce(t *testing.T) {
	d := newDesk(t)
	r := d.carried()
	r.Held.Leave()
	next, err := d.Hold(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	r.Held.Leave()
	if err := next.Check(); err != nil {
		t.Error(err)
	}
}

// TestNoGenerationTwice: a process that has slept through the end of its part of a run and the beginning of the next one finds that the run
// is not its own, although the file was removed between the two.
func TestNoGenerationTwice(t *testing.T) {
	d := newDesk(t)
	r := d.carried()
	r.Held.guard.Release() // its lease has run out
	if _, err := d.Close(r.ID); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first one continues with the file as it is, and removes it
		d.now = d.now.Add(time.Second)
		next, err := d.Hold(r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Held.Check(); !errors.Is(err, ErrClosed) {
			t.Errorf("the run is still its own: %v", err)
		}
		next.Leave()
	}
}

// TestLostRunIsNotAttended: a run that has lost its file can be closed while its process lives, such as a listener that serves other runs.
func TestLostRunIsNotAttended(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{Process: Process{ID: process.Self()}})
	held, err := d.Hold(r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !d.Attended(r.Record) || !d.Alive(r.Record) {
		t.Error("a run that is held is not alive")
	}
	if err := os.Remove(d.Home.RunLock(r.ID)); err != nil {
		t.Fatal(err)
	}
	if held.Leave(); d.Attended(r.Record) || d.Alive(r.Record) {
		t.Error("a run that nobody carries out is alive")
	}
}
