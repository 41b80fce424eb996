package runlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/ledger"
	"github.com/ollim/ollim/internal/testkit"
)

// start is when the clock of a desk begins; it stands still until it is moved.
var start = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// desk is a book in a new directory, with a clock.
type desk struct {
	Book
	t   *testing.T
	now time.Time
	ids byte // how many were made: the random part of the next
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, now: start}
	d.Book = Book{
		Home: paths.Dir(testkit.MemoryDir(t)), Zone: time.FixedZone("CET", 3600),
		Disk: store.Disk{Now: func() time.Time { return d.now }, Warn: func(m string) { t.Error("warning:", m) }},
	}
	d.Ledger = ledger.New(d.Home, d.Disk)
	return d
}

func (d *desk) open(r Record) *Run {
	d.t.Helper()
	if r.ID == "" {
		d.ids++
		r.ID = newID(d.t, d.now, d.ids)
	}
	r.Started = d.now
	opened, err := d.Open(r)
	if err != nil {
		d.t.Fatal(err)
	}
	return opened
}

func (d *desk) load(id string) Record {
	d.t.Helper()
	r, err := d.Load(id)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func (d *desk) event(r *Run, events ...Event) {
	d.t.Helper()
	for _, e := range events {
		if err := r.Event(context.Background(), e); err != nil {
			d.t.Fatal(err)
		}
	}
}

// write puts text into a file of a run's directory.
func (d *desk) write(id, name, text string) {
	d.t.Helper()
	if err := os.MkdirAll(d.Home.Run(id), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(d.Home.Run(id, name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) several(names ...string) (ids []string) {
	d.t.Helper()
	for _, name := range names {
		r := d.open(Record{Subject: Subject{Job: name + "-id", Name: name}})
		ids = append(ids, r.ID)
		d.now = d.now.Add(time.Millisecond)
	}
	return ids
}

func newID(t *testing.T, at time.Time, n byte) string {
	t.Helper()
	id, err := NewID(at, bytes.NewReader([]byte{0xab, 0xcd, n}))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestNewID(t *testing.T) {
	if got := newID(t, time.Date(2026, 3, 2, 10, 0, 0, 7e6, time.FixedZone("CET", 3600)), 0); got != "20260302T090000.007Z-abcd00" {
		t.Errorf("id %s", got)
	}
	times := []time.Duration{0, time.Millisecond, 999 * time.Millisecond, time.Second, time.Minute, 25 * time.Hour, 400 * 24 * time.Hour}
	var ids []string
	for i, after := range times {
		ids = append(ids, newID(t, start.Add(after), byte(len(times)-i)))
	}
	if !slices.IsSorted(ids) {
		t.Errorf("ids do not sort by time: %v", ids)
	}
	if _, err := NewID(start, strings.NewReader("ab")); err == nil {
		t.Error("an id without enough random bytes")
	}
}

func TestOpenAndLoad(t *testing.T) {
	d := newDesk(t)
	r := d.open(Record{Subject: Subject{Job: "a1", Name: "market"}, Process: Process{ID: process.ID{PID: 7}}, Shown: start})
	if info, err := os.Stat(d.Home.Run(r.ID)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info, err)
	}
	got := d.load(r.ID)
	if got.Job != "a1" || got.PID != 7 || !got.Shown.Equal(start) || got.Done() {
		t.Errorf("loaded %+v", got)
	}
	if text := got.Started.Format(time.RFC3339); text != "2026-03-02T10:00:00+01:00" {
		t.Errorf("started %s, want it in the configured zone", text)
	}
	if err := r.Prompt(Prompt{{Text: "Hello"}}); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(d.Home.Run(r.ID, "prompt.txt")); string(data) != "Hello\n" || err != nil {
		t.Errorf("prompt %q, %v", data, err)
	}
	if err := r.Update(func(r *Record) { r.Busy = true }); err != nil {
		t.Fatal(err)
	}
	if !d.load(r.ID).Busy || !r.Busy {
		t.Error("a change did not reach the record")
	}
}

// A record keeps every field; what a run may do is judged by it. A field that was forgotten here fails as well.
func TestEveryFieldIsKept(t *testing.T) {
	d := newDesk(t)
	at := time.Date(2026, 3, 7, 9, 0, 0, 0, time.UTC)
	want := Record{
		ID: newID(t, at, 1), Subject: Subject{Kind: "reminder", Job: "a", Name: "n", Path: "p", Description: "d", Answers: []string{"1"}}, Mode: "isolated", Foreground: true, Shared: true, Persistent: true, Key: "k", Engine: "e", Model: "m", Typed: []string{TypedModel, TypedSystem}, Thinking: "off", ModelUsed: "u", Price: &Price{Rates: Rates{In: 1, CacheHour: 2}, LongFrom: 3, Long: &Rates{Out: 4}}, Parts: []Part{{"body", 1, 2}}, Fallback: "f", EngineVersion: "1", Effort: "high", Guarantees: []string{"asks: all"}, Withdrawn: true, Started: at, Finished: &at,
		Outcome: OK, Error: "err", Fault: "key", Verify: verifyOK, Audit: true, GateOff: true, ToolCalls: 9, ToolErrors: 8, ToolFailed: 7, ToolDenied: 6, Process: Process{ID: process.ID{PID: 1, Start: 2, Boot: "b", Namespace: "pid:[1]"}, Group: 3}, AllowPing: true, Update: "always", Busy: true, Tools: []string{"Read"}, Root: "/r", Dirs: []string{"rw:/x"},
		Skills: []string{"s"}, MaxChain: 4, ChainDepth: 2, Scheduled: &at, Deadline: &at, Shown: at, SessionBefore: "b", SessionAfter: "c", Parent: "p", Compaction: CompactionFailed, Private: true, Text: "t",
		Accounted: true, Owner: true, Reserved: .5, Permissions: "default", MayAsk: true, ContextBefore: 6, Context: 7, Window: 8, CompactAt: 9, Question: "q", Continued: 5, Resumed: at, Settled: .75, Turns: 1, Pings: 2, Reports: 3, Compactions: 4, Requests: 5, Previous: "p", ToldBefore: Told{Session: "s"}, Told: Told{Session: "s", Context: 1, Pings: "p", Day: "d", Tasks: map[string]time.Time{"t": at}}, Usage: Usage{In: 1, Out: 2, CacheRead: 3, CacheWrite: 4}, Cost: .25, Assumed: .125, ByTable: .375,
		Seal: "on", Network: "none", Sealed: &Sealed{ABI: 7, Network: "none", Read: []string{"/r"}, Write: []string{"/x"}, Sockets: []string{"/s"}},
	}
	for i, v := 0, reflect.ValueOf(want); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not set here", v.Type().Field(i).Name)
		}
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Record
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
	d.write(want.ID, "run.json", string(text))
	if loaded := d.load(want.ID); !reflect.DeepEqual(loaded, want) {
		t.Errorf("\n got %+v\nwant %+v", loaded, want)
	}
}

func TestLoadWhatIsNone(t *testing.T) {
	d := newDesk(t)
	const other, empty = "20260302T090000.000Z-abcdef", "20260302T090000.000Z-000000"
	d.write(empty, "events.jsonl", "")
	d.write("20260302T090000.000Z-ABCDEF", "run.json", "{}")
	d.write(other+"0", "run.json", "{}")
	for _, id := range []string{"", "x", ".", "..", other, empty, "../runs/" + other, other + "/", other + "0", "20260302T090000.000Z-ABCDEF", "20261302T090000.000Z-abcdef"} {
		if _, err := d.Load(id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Load(%q): %v", id, err)
		}
		if _, err := d.At(id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("At(%q): %v", id, err)
		}
	}
}

func TestLoadCopied(t *testing.T) {
	d := newDesk(t)
	const id = "20260302T090000.000Z-abcdef"
	d.write(id, "run.json", `{"id":"20260101T000000.000Z-000000","job":"a1"}`)
	if r := d.load(id); r.ID != id || r.Job != "a1" {
		t.Errorf("loaded %+v", r)
	}
}

func TestList(t *testing.T) {
	d := newDesk(t)
	for _, err := range d.List() {
		t.Error("something before there is a folder:", err)
	}
	ids := d.several("a", "b", "a") // within one second
	const torn, wrong = "20260302T080000.000Z-000001", "20260302T080000.000Z-000002"
	d.write(torn, "run.json", `{"id":"x","job":"a`)
	d.write(wrong, "run.json", `{"job":"a","pid":"many"}`)
	d.write("20260302T080000.000Z-000003", "events.jsonl", "") // killed before run.json
	d.write("notes", "run.json", "{}")
	var got []string
	for r, err := range d.List() {
		got = append(got, fmt.Sprintf("%s %s %v", r.ID, r.Job, err == nil))
	}
	want := []string{ids[2] + " a-id true", ids[1] + " b-id true", ids[0] + " a-id true", wrong + "  false", torn + "  false"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for range d.List() {
		break // must not go on
	}
}

func TestListUnreadable(t *testing.T) {
	d := newDesk(t)
	if err := os.MkdirAll(d.Home.State(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Home.Runs(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, err := range d.List() {
		count++
		if err == nil {
			t.Error("no error for a file in the place of the folder")
		}
	}
	if count != 1 {
		t.Errorf("%d yields", count)
	}
	var wrong *fs.PathError
	if r, err := d.Find("last"); !errors.As(err, &wrong) {
		t.Errorf("Find: %v, %v", r, err)
	}
	for r, err := range d.Since(time.Time{}) {
		if count++; !errors.As(err, &wrong) {
			t.Errorf("Since: %v, %v", r, err)
		}
	}
	if count != 2 {
		t.Errorf("%d yields of List and Since", count)
	}
}

func TestFind(t *testing.T) {
	d := newDesk(t)
	ids := d.several("market", "news", "market", "odd~2", "market", "odd~2")
	broken := newID(t, d.now, 0xff)
	d.write(broken, "run.json", "{")
	for name, want := range map[string]int{
		"last": 5, "last~0": 5, "last~1": 4, "last~5": 0,
		"market": 4, "market.md": 4, "market-id": 4, "market~0": 4, "market~1": 2, "market-id~2": 0,
		"news": 1, "news.md~0": 1,
		"odd~2~0": 5, "odd~2~1": 3,
		ids[0]: 0, ids[3]: 3, ids[2][:len(ids[2])-1]: 2, "20260302T": 5, "20260302T~1": 4, ids[1] + "~0": 1,
	} {
		if r, err := d.Find(name); err != nil || r.ID != ids[want] {
			t.Errorf("Find(%q) = %s, %v, want %s", name, r.ID, err, ids[want])
		}
	}
	var unknown *plaintext.Unknown
	if _, err := d.Find(broken); err == nil || errors.As(err, &unknown) {
		t.Errorf("a record that cannot be read: %v", err)
	}
}

// A job is its run that is alive, else the latest that ran; what did not run counts only where nothing else is.
func TestFindPrefersWhatRan(t *testing.T) {
	d := newDesk(t)
	add := func(name string, outcome Outcome, of process.ID) string {
		r := d.open(Record{Subject: Subject{Job: name + "-id", Name: name}, Process: Process{ID: process.ID{PID: of.PID, Start: of.Start}}})
		if outcome != "" {
			if err := r.Finish(outcome, ""); err != nil {
				t.Fatal(err)
			}
		}
		d.now = d.now.Add(time.Minute)
		return r.ID
	}
	alive := add("busy", "", process.Self())
	held, err := d.Hold(alive)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Leave()
	add("busy", OK, process.ID{})
	add("busy", Skipped, process.ID{})
	old := add("idle", OK, process.ID{})
	gated := add("idle", Gated, process.ID{})
	add("idle", Skipped, process.ID{})
	add("idle", Paused, process.ID{})
	add("never", Paused, process.ID{})
	skipped := add("never", Skipped, process.ID{})
	for name, want := range map[string]string{
		"busy": alive, "busy-id": alive, "idle": gated, "idle~0": gated, "idle~1": old, "never": skipped, "last": skipped, skipped[:len(skipped)-1]: skipped,
	} {
		if r, err := d.Find(name); err != nil || r.ID != want {
			t.Errorf("Find(%q) = %s, %v, want %s", name, r.ID, err, want)
		}
	}
	for _, name := range []string{"never~1", "idle~2"} {
		if r, err := d.Find(name); err == nil {
			t.Errorf("Find(%q) = %s", name, r.ID)
		}
	}
}

func TestFindUnknown(t *testing.T) {
	d := newDesk(t)
	d.several("market", "market", "news", "")
	for name, want := range map[string]string{
		"markt":                       `no run "markt" (did you mean market?)`,
		"markt~1":                     `no run "markt~1" (did you mean market?)`,
		"market~2":                    `no run "market~2" (did you mean market?)`,
		"new":                         `no run "new" (did you mean news?)`,
		"zebra":                       `no run "zebra"`,
		"20260302":                    `no run "20260302"`,
		"":                            `no run ""`,
		"~0":                          `no run "~0"`,
		"last~4":                      `no run "last~4"`,
		"market~-1":                   `no run "market~-1"`,
		"20260302T090000.000Z-abcdef": `no run "20260302T090000.000Z-abcdef"`,
	} {
		_, err := d.Find(name)
		var unknown *plaintext.Unknown
		if !errors.As(err, &unknown) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Find(%q): %v, want %s", name, err, want)
		}
	}
}

// The records of an earlier version, which lay in one directory, are moved into those of their days: all of them by a listing, and one by
// its id. That of a run in progress stays where its process writes it until it has ended.
func TestFormerPlace(t *testing.T) {
	d := newDesk(t)
	ids := d.several("a", "b", "c")
	former := func(id string) string { return filepath.Join(d.Home.Runs(), id) }
	for _, id := range ids {
		if err := os.Rename(d.Home.Run(id), former(id)); err != nil {
			t.Fatal(err)
		}
	}
	guard, err := lock.TryGuard(filepath.Join(former(ids[0]), "running"))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := d.Load(ids[2]); err != nil || r.Name != "c" {
		t.Errorf("%+v, %v", r, err)
	}
	if all, err := d.After(time.Time{}); err != nil || !slices.Equal(all, ids[1:]) {
		t.Errorf("%q, %v; want %q", all, err, ids[1:])
	}
	guard.Release()
	if all, err := d.Between(time.Time{}, Began(ids[2])); err != nil || !slices.Equal(all, ids[:2]) {
		t.Errorf("%q, %v; want %q", all, err, ids[:2])
	}
	for _, id := range ids {
		if err := os.RemoveAll(d.Home.Run(id)); err != nil {
			t.Fatal(err)
		}
		d.Tidy(id)
	}
	if left, err := os.ReadDir(d.Home.Runs()); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
