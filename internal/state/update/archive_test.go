package update

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestFacts(t *testing.T) {
	w := newWorld(t)
	w.add("a")
	w.deliver(w.pop(Owner{Run: "r1", Lock: w.guard().File().Name()}))
	var got []string
	for line, err := range w.Ledger.Lines(time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(string(line.JSON), `,"hash"`)
		got = append(got, text)
	}
	if len(got) != 3 {
		t.Fatalf("%q", got)
	}
	_, name, _ := strings.Cut(got[1], `"claim":"`)
	name, _, _ = strings.Cut(name, `"`)
	want := []string{
		`{"at":"2026-11-21T12:00:01.000000Z","fact":"update.added","ts":"2026-11-21T12:00:01Z","message":"a","by":"run-of-a"`,
		`{"at":"2026-11-21T12:00:02.000000Z","fact":"update.taken","claim":"` + name + `","run":"r1","lock":"` + w.Home.SessionLock("") + `"`,
		`{"at":"2026-11-21T12:00:03.000000Z","fact":"update.used","claim":"` + name + `","to":"r1","updates":[{"ts":"2026-11-21T12:00:01Z","message":"a","by":"run-of-a"}]`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("facts\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestFateKnowsItsReporter(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 11)
	if list, err := w.Peek(context.Background()); err != nil || list[0].By != "" || list[1].By != "run-of-3" {
		t.Errorf("pending %+v, %v", list, err)
	}
	w.deliver(w.pop(Owner{Run: "r1"}))
	var got []string
	for f, err := range w.Fates(time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s:%d by %q", f.Became, f.Omitted, f.By))
		if f.At.Location() != w.Zone || f.TS.Location() != w.Zone {
			t.Errorf("times not in the zone: %v, %v", f.At, f.TS)
		}
	}
	if got[0] != `dropped:0 by "run-of-1"` || got[2] != `popped:2 by ""` || got[3] != `popped:0 by "run-of-3"` || len(got) != 12 {
		t.Errorf("got %q", got)
	}
}

// The fates of a time are read, and no more than is asked for.
func TestFatesSince(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 12)
	since := w.now.Add(1)
	w.addN(13, 13)
	count := 0
	for f := range w.Fates(since) {
		if count++; f.Message != "4" {
			t.Errorf("%+v", f)
		}
	}
	if count != 1 {
		t.Errorf("%d fates since then", count)
	}
	for range w.Fates(time.Time{}) {
		break
	}
}

func TestLedgerThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.put(w.Home.State("ledger"), "a file where the folder should be")
	for f, err := range w.Fates(time.Time{}) {
		if err == nil || f.Became != "" {
			t.Errorf("%v, %v", f, err)
		}
	}
	if err := w.Add(context.Background(), "a", "owner"); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(w.Home.PendingUpdates()); err == nil {
		t.Error("the file shows an update that was not added")
	}
}
