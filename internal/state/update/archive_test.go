package update

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

func TestArchiveLines(t *testing.T) {
	w := newWorld(t)
	w.add("a")
	w.deliver(w.pop(Owner{Run: "r1"}))
	lines := strings.Split(strings.TrimSpace(w.read(w.Home.UpdateArchive())), "\n")
	want := []string{
		`{"ts":"2026-11-21T13:00:01+01:00","message":"a","became":"added","at":"2026-11-21T13:00:01+01:00","by":"run-of-a"}`,
		`{"ts":"2026-11-21T13:00:01+01:00","message":"a","became":"popped","at":"2026-11-21T13:00:03+01:00","to":"r1"}`,
	}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("archive\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestFateKnowsItsReporter(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 11)
	w.deliver(w.pop(Owner{Run: "r1"}))
	var got []string
	for f, err := range w.Archive(nil) {
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

func TestFateIsFlat(t *testing.T) {
	data, err := json.Marshal(fate{Update{noon(), "m"}, becamePopped, noon(), "b", "t", 3})
	want := `{"ts":"2026-11-21T12:00:00Z","message":"m","became":"popped","at":"2026-11-21T12:00:00Z","by":"b","to":"t","omitted":3}`
	if string(data) != want || err != nil {
		t.Errorf("%s, %v", data, err)
	}
}

// What waits has met no fate, and what was dropped by a process that died before it changed the box counts by its later fate.
func TestArchiveTellsTheLastFate(t *testing.T) {
	w := newWorld(t)
	w.add("a", "b", "c")
	w.expectFates()
	list, _ := w.Peek(context.Background())
	for range 2 {
		o, err := w.open(context.Background(), Owner{}, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := o.archive(o.fates(list[:2], becameDropped, ""), store.Synced); err != nil {
			t.Fatal(err)
		}
		o.close()
	}
	w.expectFates("a dropped", "b dropped")
	w.deliver(w.pop(Owner{Run: "r"}))
	w.expectFates("a popped r", "b popped r", "c popped r")
}

func TestArchiveWithBadLines(t *testing.T) {
	w := newWorld(t)
	w.add("a")
	w.deliver(w.pop(Owner{Run: "r"}))
	good := w.read(w.Home.UpdateArchive())
	w.put(w.Home.UpdateArchive(), "garbage\n{}\n"+good+"[1]\n{\"ts\":\"2026-11-21T13:00:01+01:00\",\"mess")
	list, bad := w.fates()
	if len(list) != 1 || bad != 4 {
		t.Errorf("%q with %d bad lines, want one and 4", list, bad)
	}
	w.add("b") // ends the torn line
	w.deliver(w.pop(Owner{Run: "r"}))
	if list, bad := w.fates(); strings.Join(list, ",") != "a popped r,b popped r" || bad != 4 {
		t.Errorf("%q with %d bad lines", list, bad)
	}
}

func TestArchiveStopsWhenAsked(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 12)
	for range w.Archive(nil) {
		break
	}
}

func TestArchiveThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.put(w.Home.UpdateArchive()+"/x", "")
	for f, err := range w.Archive(nil) {
		if err == nil || f.Became != "" {
			t.Errorf("%v, %v", f, err)
		}
	}
	if err := w.Add(context.Background(), "a", "owner"); err == nil {
		t.Error("no error")
	}
	if list, err := w.Peek(context.Background()); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// The last line gives the latest ts, for any length of lines and any change of the clock.
func TestHighWater(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("<\u2028", MaxChars/2)
	high := time.Time{}
	for _, hour := range []int{0, 5, 2, -3, 9, 9, -9} {
		w.now = noon().Add(time.Duration(hour) * time.Hour)
		w.add(long, long)
		c := w.pop(Owner{})
		high = latest(high, c.Updates[1].TS, w.now)
		w.deliver(c)
		high = latest(high, w.now)
		o, err := w.open(context.Background(), Owner{}, "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := o.highWater()
		o.close()
		if !got.Equal(high) || err != nil {
			t.Errorf("at hour %d: %v, %v, want %v", hour, got, err, high)
		}
	}
	torn := w.read(w.Home.UpdateArchive()) + strings.Repeat("x", 200<<10)
	w.put(w.Home.UpdateArchive(), torn)
	if got, err := (&opened{Box: w.Box}).highWater(); err != nil || !got.Equal(high) {
		t.Errorf("after a long torn line: %v, %v, want %v", got, err, high)
	}
}
