package update

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAddWritesTheFormatOfTheSeed(t *testing.T) {
	w := newWorld(t)
	w.add("<first>", "second")
	var file []map[string]string
	if err := json.Unmarshal([]byte(w.read(w.Home.PendingUpdates())), &file); err != nil {
		t.Fatal(err)
	}
	want := []map[string]string{
		{"ts": "2026-11-21T13:00:01.000000+01:00", "message": "<first>"},
		{"ts": "2026-11-21T13:00:02.000000+01:00", "message": "second"},
	}
	if fmt.Sprint(file) != fmt.Sprint(want) {
		t.Errorf("on disk\n got %v\nwant %v", file, want)
	}
}

func TestAddRefusesEmpty(t *testing.T) {
	w := newWorld(t)
	for _, message := range []string{"", " \n\t", "\x00\x1b\u202e"} {
		if err := w.Add(context.Background(), message, "owner"); !errors.Is(err, ErrEmpty) {
			t.Errorf("Add(%q) = %v, want ErrEmpty", message, err)
		}
	}
	if len(w.snapshot()) != 0 {
		t.Errorf("something was written: %v", w.snapshot())
	}
}

func TestCap(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 10)
	w.expect("1 2 3 4 5 6 7 8 9 10")
	w.addN(11, 11)
	w.expect("(2) 3 4 5 6 7 8 9 10 11")
	w.addN(12, 30)
	w.expect("(21) 22 23 24 25 26 27 28 29 30")
	if list, _ := w.Peek(context.Background()); len(list) != maxEntries || list[0].Message != "(21 earlier update(s) omitted — cap reached)" {
		t.Errorf("sentinel %q, %d entries", list[0].Message, len(list))
	}
	var dropped []string
	for i := 1; i <= 21; i++ {
		dropped = append(dropped, fmt.Sprintf("%d dropped", i))
	}
	w.expectFates(dropped...)
	w.deliver(w.pop(Owner{Run: "r"}))
	w.addN(31, 31)
	w.expect("31") // the count begins anew
}

func TestImitatedSentinelIsText(t *testing.T) {
	w := newWorld(t)
	w.add(sentinel(7))
	w.expect(`"` + sentinel(7) + `"`)
	w.addN(1, 10)
	w.expect("(2) 2 3 4 5 6 7 8 9 10")
}

func TestStampsIncrease(t *testing.T) {
	w := newWorld(t)
	w.step = 0
	w.add("a", "b")
	w.now = noon().Add(-time.Hour)
	w.add("c")
	w.now = noon().Add(1500 * time.Nanosecond)
	w.add("d")
	w.now = noon().Add(time.Second + 999)
	w.add("e")
	list, _ := w.Peek(context.Background())
	var offsets []time.Duration
	for _, u := range list {
		offsets = append(offsets, u.TS.Sub(noon()))
	}
	µ := time.Microsecond
	if want := []time.Duration{0, µ, 2 * µ, 3 * µ, time.Second}; !slices.Equal(offsets, want) {
		t.Errorf("offsets %v, want %v", offsets, want)
	}
}

// An update is identified by its ts and message permanently, so a clock that stands still must not give out a pair twice, be the first
// one in the box, claimed, or long used.
func TestStampsAreNeverUsedTwice(t *testing.T) {
	w := newWorld(t)
	w.step = 0
	var want []string
	for i := range 6 {
		w.add("same", "same")
		c := w.pop(Owner{Run: "r"})
		w.now = noon().Add(time.Duration(i%3-1) * time.Microsecond)
		w.add("same")
		w.deliver(c)
		w.deliver(w.pop(Owner{Run: "r"}))
		want = append(want, "same popped r", "same popped r", "same popped r")
	}
	w.expectFates(want...)
}

// A clock that was wrong once, far ahead, must not spoil all times to come.
func TestClockAheadHeals(t *testing.T) {
	w := newWorld(t)
	w.now = noon().AddDate(70, 0, 0)
	w.add("future")
	w.deliver(w.pop(Owner{}))
	w.now = noon()
	w.add("now")
	list, _ := w.Peek(context.Background())
	if got := list[0].TS.Sub(noon()); got != time.Second {
		t.Errorf("ts is %v after noon, want 1s", got)
	}
}

func TestForeignFiles(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"python", `[{"ts": "2026-11-21T09:30:00.123456+01:00", "message": "a"}]`, "09:30:00.123456 a"},
		{"python without microseconds", `[{"ts": "2026-11-21T09:30:00+01:00", "message": "a"}]`, "09:30:00.000000 a"},
		{"no offset: the zone", `[{"ts": "2026-11-21T09:30:00.5", "message": "a"}]`, "09:30:00.500000 a"},
		{"a space", `[{"ts": "2026-11-21 09:30:00.25", "message": "a"}]`, "09:30:00.250000 a"},
		{"offset without colon", `[{"ts": "2026-11-21T09:30:00+0100", "message": "a"}]`, "09:30:00.000000 a"},
		{"Z", `[{"ts": "2026-11-21T08:30:00Z", "message": "a"}]`, "09:30:00.000000 a"},
		{"another zone", `[{"ts": "2026-11-21T03:30:00-05:00", "message": "a"}]`, "09:30:00.000000 a"},
		{"nanoseconds", `[{"ts": "2026-11-21T08:30:00.123456789Z", "message": "a"}]`, "09:30:00.123456 a"},
		{"more keys", `[{"ts": "2026-11-21T08:30:00Z", "message": "a", "x": [1]}]`, "09:30:00.000000 a"},
		{"unordered and equal", `[{"ts":"2026-11-21T08:30:01Z","message":"b"},{"ts":"2026-11-21T08:30:00Z","message":"a"},
			{"ts":"2026-11-21T08:30:00Z","message":"a"}]`, "09:30:00.000000 a|09:30:00.000001 a|09:30:01.000000 b"},
		{"sentinel", `[{"ts":"2026-11-21T08:30:00Z","message":"(4 earlier update(s) omitted — cap reached)"},
			{"ts":"2026-11-21T08:29:00Z","message":"a"}]`, "09:30:00.000000 (4 earlier update(s) omitted — cap reached)|09:29:00.000000 a"},
		{"sentinel elsewhere: text", `[{"ts":"2026-11-21T08:29:00Z","message":"a"},
			{"ts":"2026-11-21T08:30:00Z","message":"(4 earlier update(s) omitted — cap reached)"}]`,
			"09:29:00.000000 a|09:30:00.000000 (4 earlier update(s) omitted — cap reached)"},
		{"empty", `[]`, ""},
		{"null", `null`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.put(w.Home.PendingUpdates(), tt.file)
			for _, read := range []func() []Update{
				func() []Update { list, _ := w.Peek(context.Background()); return list },
				func() []Update { return w.pop(Owner{}).Updates },
			} {
				var got []string
				for _, u := range read() {
					if u.TS.Nanosecond()%1000 != 0 || u.TS.Location() != w.Zone {
						t.Errorf("ts %v", u.TS)
					}
					got = append(got, u.TS.Format("15:04:05.000000 ")+u.Message)
				}
				if strings.Join(got, "|") != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			}
			if len(w.warned) != 0 {
				t.Errorf("warned %q", w.warned)
			}
		})
	}
}

// The sentinel is as old as the newest update that it stands for, so that a reader of what is new knows whether to see it.
func TestSentinelStamp(t *testing.T) {
	w := newWorld(t)
	w.addN(1, 14)
	list, _ := w.Peek(context.Background())
	if got := list[0].TS.Sub(noon()); got != 5*time.Second {
		t.Errorf("the sentinel for 5 updates is %v after noon", got)
	}
	c := w.pop(Owner{})
	w.addN(15, 17)
	w.giveBack(c) // drops three at once
	list, _ = w.Peek(context.Background())
	if got := list[0].TS.Sub(noon()); got != 8*time.Second {
		t.Errorf("the sentinel for 8 updates is %v after noon", got)
	}
}

func TestStampIsLaterThanAForeignSentinel(t *testing.T) {
	w := newWorld(t)
	w.put(w.Home.PendingUpdates(), `[{"ts":"2030-01-01T00:00:00Z","message":"(4 earlier update(s) omitted — cap reached)"}]`)
	w.add("a")
	list, _ := w.Peek(context.Background())
	if got := list[1].TS.Sub(list[0].TS); got != time.Microsecond {
		t.Errorf("%v later", got)
	}
}

func TestForeignSentinelCounts(t *testing.T) {
	w := newWorld(t)
	file := `[{"ts":"2026-11-21T08:00:00Z","message":"(4 earlier update(s) omitted — cap reached)"}`
	for i := range 12 {
		file += fmt.Sprintf(`,{"ts":"2026-11-21T08:00:%02d","message":"f%d"}`, i, i)
	}
	w.put(w.Home.PendingUpdates(), file+"]")
	w.add("mine")
	w.expect("(8) f4 f5 f6 f7 f8 f9 f10 f11 mine")
}

func TestCorruptArray(t *testing.T) {
	for _, file := range []string{`[{"ts":"2026-11-21T08:00:00Z","message":"a"`, `{}`, `[{"ts":"yesterday","message":"a"}]`,
		`[{"message":"a"}]`, `[{"ts":"2026-11-21T08:00:00Z"}]`, `[null]`, `[1]`, ``, "\x00\x00"} {
		for name, act := range map[string]func(w *world){
			"Peek":  func(w *world) { w.expect("") },
			"Add":   func(w *world) { w.add("x"); w.expect("x") },
			"Pop":   func(w *world) { w.pop(Owner{}); w.expect("") },
			"Clear": func(w *world) { _, _ = w.Clear(context.Background(), "owner"); w.expect("") },
		} {
			w := newWorld(t)
			w.put(w.Home.PendingUpdates(), file)
			act(w)
			aside, _ := filepath.Glob(w.Home.PendingUpdates() + ".corrupt-*")
			if len(aside) != 1 || w.read(aside[0]) != file || len(w.warned) != 1 {
				t.Errorf("%s of %q: kept as %q, warned %q", name, file, aside, w.warned)
			}
		}
	}
}

func TestPeekWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.expect("")
	if files, _ := filepath.Glob(w.Home.Path("*")); len(files) != 0 {
		t.Errorf("Peek of nothing made %q", files)
	}
	w.addN(1, 12)
	before := w.snapshot()
	w.expect("(3) 4 5 6 7 8 9 10 11 12")
	if fmt.Sprint(w.snapshot()) != fmt.Sprint(before) {
		t.Error("Peek changed something")
	}
}

func TestClear(t *testing.T) {
	w := newWorld(t)
	if n, err := w.Clear(context.Background(), "owner"); n != 0 || err != nil {
		t.Errorf("Clear of nothing: %d, %v", n, err)
	}
	if d := w.snapshot(); len(d) != 0 {
		t.Errorf("Clear of nothing wrote %v", d)
	}
	w.addN(1, 11)
	w.started["owner"] = true // must not matter
	if n, err := w.Clear(context.Background(), "owner"); n != 9 || err != nil {
		t.Errorf("Clear: %d, %v, want 9", n, err)
	}
	w.expect("")
	if exists(w.Home.PendingUpdates()) {
		t.Error("the array is still there")
	}
	if files := w.claims(); len(files) != 0 {
		t.Errorf("left %+v", files)
	}
	w.expectFates("1 dropped", "2 dropped", "(2) cleared owner", "3 cleared owner", "4 cleared owner", "5 cleared owner",
		"6 cleared owner", "7 cleared owner", "8 cleared owner", "9 cleared owner", "10 cleared owner", "11 cleared owner")
}
