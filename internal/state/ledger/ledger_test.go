package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/storetest"
)

// put is a fact of the tests: a key has a value.
type put struct {
	Key   string `json:"key"`
	Value int    `json:"value"`
}

func (put) Fact() string { return "test.put" }

// gone is a fact without fields of its own but one.
type gone struct {
	Key string `json:"key,omitempty"`
}

func (gone) Fact() string { return "test.gone" }

type values struct {
	All map[string]int `json:"all"`
}

func testBook(name string) *Book[values] {
	return NewBook(name,
		On("test.put", func(s *values, _ time.Time, f put) {
			if s.All == nil {
				s.All = map[string]int{}
			}
			s.All[f.Key] = f.Value
		}),
		On("test.gone", func(s *values, _ time.Time, f gone) { delete(s.All, f.Key) }),
	)
}

// clock is a clock of the tests.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newClock() *clock { return &clock{time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)} }

func open(dir string, now func() time.Time) *Ledger {
	return New(paths.Dir(dir), store.Disk{Now: now, Warn: func(string) {}}, testBook("values"))
}

func add(t *testing.T, l *Ledger, facts ...Fact) {
	t.Helper()
	if err := l.Change(t.Context(), store.Buffered, func(tx *Tx) error { return tx.Add(facts...) }); err != nil {
		t.Fatal(err)
	}
}

func addSynced(t *testing.T, l *Ledger, facts ...Fact) {
	t.Helper()
	if err := l.Change(t.Context(), store.Synced, func(tx *Tx) error { return tx.Add(facts...) }); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, l *Ledger) map[string]int {
	t.Helper()
	all := map[string]int{}
	err := l.Read(func(v View) error {
		s, err := Of(v, testBook("values"))
		if err == nil {
			maps.Copy(all, s.All)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestConformance(t *testing.T) {
	count := func(dir string, _ func(string)) (n int, err error) {
		err = open(dir, time.Now).Read(func(v View) error {
			s, err := Of(v, testBook("values"))
			n = len(s.All)
			return err
		})
		return n, err
	}
	storetest.Run(t, storetest.Store{
		File: func(dir string) string { return filepath.Join(dir, "state", "ledger") },
		Lock: func(dir string) string { return paths.Dir(dir).Lock("ledger") },
		Busy: lock.ErrBusy,
		Add: func(ctx context.Context, dir string, _ func(string), item string) error {
			return open(dir, time.Now).Change(ctx, store.Synced, func(tx *Tx) error { return tx.Add(put{item, 1}, put{item, 2}) })
		},
		Count: count,
	})
}

// A fact is a line that a person can search, and a change shows what it added.
func TestLines(t *testing.T) {
	dir, c := testkit.MemoryDir(t), newClock()
	l := open(dir, c.Now)
	err := l.Change(t.Context(), store.Synced, func(tx *Tx) error {
		if err := tx.Add(put{"a<b", 1}, gone{}); err != nil {
			return err
		}
		s, err := Of(tx.View, testBook("values"))
		if s.All["a<b"] != 1 {
			t.Errorf("in the change: %v", s)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "state/ledger/2026-11-23.jsonl"))
	lines := strings.Split(string(text), "\n")
	if err != nil || len(lines) != 3 || !strings.HasPrefix(lines[0], `{"at":"2026-11-23T12:00:00.000000Z","fact":"test.put","key":"a<b","value":1,"more":1,"hash":"`) ||
		!strings.HasPrefix(lines[1], `{"at":"2026-11-23T12:00:00.000000Z","fact":"test.gone","hash":"`) {
		t.Errorf("%v\n%s", err, text)
	}
	info, err := os.Stat(filepath.Join(dir, "state/ledger/2026-11-23.jsonl"))
	if err != nil || info.Mode().Perm() != 0o600 || l.Size() != info.Size() {
		t.Errorf("%v %d %v", info.Mode(), l.Size(), err)
	}
}

// A change is as durable as its most demanding part: head.json has the end of what was synced.
func TestNeeds(t *testing.T) {
	dir := t.TempDir()
	l := open(dir, newClock().Now)
	for _, d := range []store.Durability{store.Synced, store.Buffered, store.Synced} {
		err := l.Change(t.Context(), store.Buffered, func(tx *Tx) error {
			tx.Needs(d)
			tx.Needs(store.Buffered)
			return tx.Add(put{"a", 1})
		})
		info, statErr := os.Stat(l.path("2026-11-23"))
		head, _, headErr := store.PeekJSON[position](l.headPath())
		if err = errors.Join(err, statErr, headErr); err != nil || (head.Offset == info.Size()) != (d == store.Synced) {
			t.Errorf("%v: %v, head %d", d, err, head.Offset)
		}
	}
}

// TestSyncKeepsTheHead: what another process has synced later stays noted, so that its removal is detected.
func TestSyncKeepsTheHead(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	l, other := open(dir, c.Now), open(dir, c.Now)
	put := func(to *Ledger, d store.Durability) {
		if err := to.Change(t.Context(), d, func(tx *Tx) error { return tx.Add(put{"a", 1}) }); err != nil {
			t.Fatal(err)
		}
	}
	head := func() int64 {
		at, _, err := store.PeekJSON[position](l.headPath())
		if err != nil {
			t.Fatal(err)
		}
		return at.Offset
	}
	put(l, store.Buffered)
	put(other, store.Synced)
	synced := head()
	if err := l.Sync(); err != nil || head() != synced {
		t.Errorf("%v: head %d, want %d", err, head(), synced)
	}
	put(l, store.Buffered)
	if err := l.Sync(); err != nil || head() <= synced {
		t.Errorf("%v: head %d, want more than %d", err, head(), synced)
	}
}

// A change that fails, and one that adds nothing, change nothing.
func TestChangeThatFails(t *testing.T) {
	l := open(testkit.MemoryDir(t), newClock().Now)
	add(t, l, put{"a", 1})
	err := l.Change(t.Context(), store.Buffered, func(tx *Tx) error {
		if err := tx.Add(put{"a", 2}); err != nil {
			return err
		}
		return os.ErrInvalid
	})
	if !errors.Is(err, os.ErrInvalid) || read(t, l)["a"] != 1 {
		t.Errorf("%v %v", err, read(t, l))
	}
	add(t, l)
	if lines := slices.Collect(maps.Keys(read(t, l))); len(lines) != 1 {
		t.Errorf("%v", lines)
	}
}

// Wherever the file ends, the last change is there as a whole or not at all, and the next writer goes on behind what is whole.
func TestTornAtEachByte(t *testing.T) {
	dir, c := testkit.MemoryDir(t), newClock()
	l := open(dir, c.Now)
	path := l.path("2026-11-23")
	add(t, l, put{"a", 1})
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, put{"a", 2}, put{"b", 2}, put{"c", 2})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(l.checkpointPath()); err != nil {
		t.Fatal(err)
	}
	for end := len(before); end <= len(whole); end++ {
		if err := os.WriteFile(path, whole[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"a": 1}
		if end == len(whole) {
			want = map[string]int{"a": 2, "b": 2, "c": 2}
		}
		next := open(dir, c.Now)
		if got := read(t, next); !maps.Equal(got, want) {
			t.Fatalf("%d of %d bytes: %v", end, len(whole), got)
		}
		add(t, next, put{"d", 3})
		want["d"] = 3
		if got := read(t, open(dir, c.Now)); !maps.Equal(got, want) || !maps.Equal(read(t, l), want) {
			t.Fatalf("%d of %d bytes, and a change: %v, %v", end, len(whole), got, read(t, l))
		}
		if faults, _, err := l.Verify(); err != nil || len(faults) > 0 {
			t.Fatalf("%d of %d bytes: %v %v", end, len(whole), faults, err)
		}
		if err := os.Remove(l.checkpointPath()); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

// TestHistories compares a ledger with a map over random histories: changes by several processes, days that pass, clocks that are set back,
// checkpoints that are deleted, damaged or of another history, days that are trimmed and books that are new.
func TestHistories(t *testing.T) {
	for seed := range uint64(testkit.Full(40, 5)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := history{T: t, r: rand.New(rand.NewPCG(seed, 1)), dir: testkit.MemoryDir(t), clock: newClock(), want: map[string]int{}}
			h.all = []*Ledger{open(h.dir, h.clock.Now), open(h.dir, h.clock.Now)}
			for range 150 {
				h.step()
			}
			if faults, n, err := h.all[0].Verify(); err != nil || len(faults) > 0 || n == 0 {
				t.Errorf("%v %d %v", faults, n, err)
			}
		})
	}
}

type history struct {
	*testing.T

	r     *rand.Rand
	dir   string
	clock *clock
	all   []*Ledger
	want  map[string]int
	old   []byte // an earlier checkpoint
	torn  bool   // the newest file ends in an incomplete change
}

func (h *history) step() {
	h.Helper()
	l := h.all[h.r.IntN(len(h.all))]
	switch h.r.IntN(12) {
	case 0:
		h.clock.now = h.clock.now.Add(time.Duration(h.r.IntN(40)-4) * time.Hour)
	case 1:
		_ = os.Remove(l.checkpointPath())
	case 2:
		if h.old != nil {
			_ = os.WriteFile(l.checkpointPath(), h.old[:h.r.IntN(len(h.old)+1)], 0o600)
		}
		h.old, _ = os.ReadFile(l.checkpointPath())
	case 3:
		h.all[h.r.IntN(len(h.all))] = open(h.dir, h.clock.Now)
	case 4:
		if err := l.Trim(h.Context(), h.clock.now.Add(-48*time.Hour)); err != nil {
			h.Fatal(err)
		}
	case 5:
		days, _ := l.days()
		if len(days) > 0 && !h.torn { // what a process left that was killed as it wrote
			f, err := os.OpenFile(l.path(days[len(days)-1]), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				h.Fatal(err)
			}
			_, _ = f.WriteString(`{"at":"2026-11-23T12:00:00.000000Z","fact":"test.put","key":"k1","value":-1,"more":1,"hash":"0123456789abcdef"}` + "\n" + `{"at`)
			_ = f.Close()
			h.torn = true
		}
	default:
		h.torn = false
		var facts []Fact
		for range 1 + h.r.IntN(3) {
			key, value := fmt.Sprintf("k%d", h.r.IntN(9)), h.r.IntN(1000)
			if h.r.IntN(4) == 0 {
				facts = append(facts, gone{key})
				delete(h.want, key)
				continue
			}
			facts = append(facts, put{key, value})
			h.want[key] = value
		}
		if h.r.IntN(8) == 0 {
			facts = append(facts, put{"long", len(facts)}, put{strings.Repeat("x", 30<<10), 0}, gone{strings.Repeat("x", 30<<10)})
			h.want["long"] = len(facts) - 3
		}
		add(h.T, l, facts...)
	}
	for _, l := range h.all {
		if got := read(h.T, l); !maps.Equal(got, h.want) {
			h.Fatalf("%v, want %v", got, h.want)
		}
	}
	if h.r.IntN(10) == 0 { // a book of another name is folded from the first fact
		err := l.Read(func(v View) error {
			s, err := Of(v, testBook("other"))
			if days, _ := l.days(); err == nil && len(s.All) > len(h.want) && len(days) > 0 {
				h.Errorf("%v, want %v", s.All, h.want)
			}
			return err
		})
		if err != nil {
			h.Fatal(err)
		}
	}
}

// A bit that is flipped anywhere, and each line that is removed, added twice or swapped, is found.
func TestVerify(t *testing.T) {
	dir, c := testkit.MemoryDir(t), newClock()
	l := open(dir, c.Now)
	for i := range 6 {
		c.now = c.now.Add(9 * time.Hour)
		addSynced(t, l, put{"a", i}, put{"b", i})
	}
	if faults, n, err := l.Verify(); err != nil || len(faults) > 0 || n != 12 {
		t.Fatalf("%v %d %v", faults, n, err)
	}
	days, err := l.days()
	if err != nil || len(days) < 3 {
		t.Fatalf("%v %v", days, err)
	}
	for _, day := range days {
		whole, err := os.ReadFile(l.path(day))
		if err != nil {
			t.Fatal(err)
		}
		spoilt := [][]byte{nil}
		lines := bytes.SplitAfter(whole, []byte{'\n'})
		lines = lines[:len(lines)-1]
		for i := range lines {
			without := slices.Delete(slices.Clone(lines), i, i+1)
			twice := slices.Insert(slices.Clone(lines), i, lines[i])
			spoilt = append(spoilt, bytes.Join(without, nil), bytes.Join(twice, nil))
			if i > 0 {
				swapped := slices.Clone(lines)
				swapped[i], swapped[i-1] = swapped[i-1], swapped[i]
				spoilt = append(spoilt, bytes.Join(swapped, nil))
			}
		}
		for i := range whole {
			text := bytes.Clone(whole)
			text[i] ^= 1 << (i % 8)
			spoilt = append(spoilt, text)
		}
		for i, text := range spoilt {
			if err := os.WriteFile(l.path(day), text, 0o600); err != nil {
				t.Fatal(err)
			}
			faults, _, err := open(dir, c.Now).Verify()
			if err != nil || len(faults) == 0 {
				t.Errorf("%s: change %d is not found: %v\n%s", day, i, err, text)
				continue
			}
			if first := differs(whole, text); bytes.Count(text, []byte{'\n'}) == len(lines) && faults[0].Line != first {
				t.Errorf("%s: change %d is in line %d, not %d", day, i, first, faults[0].Line)
			}
		}
		if err := os.Remove(l.path(day)); err != nil {
			t.Fatal(err)
		}
		if faults, _, err := open(dir, c.Now).Verify(); err != nil || len(faults) == 0 {
			t.Errorf("%s: it is not found that the file is gone: %v", day, err)
		}
		if err := os.WriteFile(l.path(day), whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVerifyHead: a head that is no position of the ledger is a fault, as if facts were gone.
func TestVerifyHead(t *testing.T) {
	t.Parallel()
	l := open(testkit.MemoryDir(t), newClock().Now)
	addSynced(t, l, put{"a", 1}, put{"b", 2})
	for _, offset := range []int64{5, 1 << 40} {
		l.writeHead(head{}, position{"2026-11-23", offset, first})
		if faults, _, err := l.Verify(); err != nil || len(faults) != 1 || faults[0].Line != 0 {
			t.Errorf("offset %d: %v, %v", offset, faults, err)
		}
	}
}

// differs returns the number of the first line that two texts do not have in common.
func differs(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return 1 + bytes.Count(a[:i], []byte{'\n'})
		}
	}
	return 0
}

// A part of a line is no line.
func TestMalformed(t *testing.T) {
	t.Parallel()
	text, _ := encode([]Line{{At: newClock().now, Kind: "test.put", JSON: []byte(`{"key":"a"}`)}}, position{Hash: first})
	text = bytes.TrimSuffix(text, []byte{'\n'})
	if l, err := parse(text); err != nil || l.Kind != "test.put" || l.more != 0 {
		t.Fatalf("%+v, %v", l, err)
	}
	for i := range text {
		if _, err := parse(text[:i]); err == nil {
			t.Errorf("the first %d bytes are a line", i)
		}
		if i > 0 {
			if _, err := parse(text[i:]); err == nil {
				t.Errorf("the line without its first %d bytes is one", i)
			}
		}
	}
}

// The files of a store are imported once, those of one that joins later as well, also where only reading is possible. A crash before the
// files were put away costs nothing.
func TestImport(t *testing.T) {
	dir, c := testkit.MemoryDir(t), newClock()
	queue, lockFile := filepath.Join(dir, "state/queue"), paths.Dir(dir).Lock("ledger")
	err := errors.Join(os.MkdirAll(queue, 0o700), os.WriteFile(filepath.Join(queue, "1.json"), nil, 0o600), os.WriteFile(filepath.Join(queue, "1.lock"), nil, 0o600),
		os.MkdirAll(lockFile, 0o700)) // so that nothing can be written
	if err != nil {
		t.Fatal(err)
	}
	added := map[string]int{}
	with := func(stores ...string) *Ledger {
		l := open(dir, c.Now)
		for i, name := range stores {
			l.Imports = append(l.Imports, Import{Store: name, Former: []string{name + "/*.json", "none.json"}, Add: func(tx *Tx) error {
				added[name]++
				return tx.AddAt(tx.At.Add(-100*time.Hour), put{name, i})
			}})
		}
		return l
	}
	want := map[string]int{"queue": 0}
	if got := read(t, with("queue")); !maps.Equal(got, want) || added["queue"] != 1 {
		t.Errorf("read only: %v, added %v", got, added)
	}
	lines := 0
	for line := range with("queue", "box").Lines(time.Time{}, "test.put") {
		if lines++; !line.At.Equal(c.now.Add(-100 * time.Hour)) {
			t.Errorf("%v", line.At)
		}
	}
	if lines != 2 {
		t.Errorf("%d facts of two stores", lines)
	}
	clear(added)
	if err := os.Remove(lockFile); err != nil {
		t.Fatal(err)
	}
	if err := with("queue").Trim(t.Context(), time.Time{}); err != nil || !store.Exists(filepath.Join(queue, "1.json")) {
		t.Errorf("a file is put away that was not imported, %v", err)
	}
	if got := read(t, with("queue")); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
	clear(added)
	want["box"] = 1
	if got := read(t, with("queue", "box")); !maps.Equal(got, want) || added["queue"] != 0 {
		t.Errorf("a second store: %v, added %v", got, added)
	}
	clear(added)
	add(t, with("queue", "box"), put{"new", 3})
	want["new"] = 3
	if got := read(t, with("box", "queue")); !maps.Equal(got, want) || len(added) != 0 {
		t.Errorf("%v, added %v", got, added)
	}
	former, _ := filepath.Glob(filepath.Join(dir, "state/former/queue/*"))
	if left, _ := filepath.Glob(filepath.Join(queue, "*")); len(left) != 1 || len(former) != 1 || filepath.Base(former[0]) != "1.json" {
		t.Errorf("moved %q, left %q", former, left)
	}
	err = os.Rename(former[0], filepath.Join(queue, "1.json")) // as a crash leaves it
	if err = errors.Join(err, with("queue", "box").Trim(t.Context(), time.Time{})); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(queue, "*.json")); len(left) != 0 {
		t.Errorf("left %q", left)
	}
}

// Where there is nothing to import and nothing is changed, nothing is written.
func TestImportOfNothing(t *testing.T) {
	dir := testkit.MemoryDir(t)
	l := open(dir, newClock().Now)
	l.Imports = []Import{{Store: "none", Add: func(*Tx) error { return nil }}}
	if got := read(t, l); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("reading makes %v, %v", left, err)
	}
	add(t, l)
	for _, imports := range [][]Import{nil, l.Imports} {
		l.Imports = imports
		for _, want := range []error{nil, os.ErrInvalid} {
			calls := 0
			err := l.Read(func(View) error {
				calls++
				return want
			})
			if calls != 1 || !errors.Is(err, want) {
				t.Errorf("%d imports: Read calls its reader %d times, and says %v, want %v", len(imports), calls, err, want)
			}
		}
	}
	if _, err := os.Lstat(l.folder()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	other := open(dir, newClock().Now)
	add(t, other, put{"a", 0})
	if got := read(t, l); !maps.Equal(got, map[string]int{"a": 0}) {
		t.Errorf("beside facts: %v", got)
	}
	add(t, l, put{"a", 1})
	if _, n, err := l.Verify(); n != 3 || err != nil {
		t.Errorf("%d facts, %v", n, err)
	}
}

// What is to be done after a change is done under its lock, and learns whether the facts were written.
func TestAfter(t *testing.T) {
	dir, c := testkit.MemoryDir(t), newClock()
	l := open(dir, c.Now)
	ended := errors.New("ended")
	for _, want := range []error{nil, ended} {
		var got []error
		err := l.Change(t.Context(), store.Buffered, func(tx *Tx) error {
			for range 2 {
				tx.After(func(err error) {
					if lock.Free(paths.Dir(dir).Lock("ledger")) {
						t.Error("the ledger is not locked")
					}
					got = append(got, err)
				})
			}
			return errors.Join(tx.Add(put{"a", 1}), want)
		})
		if !errors.Is(err, want) || len(got) != 2 || !errors.Is(got[0], want) || (got[1] == nil) != (want == nil) {
			t.Errorf("%v: told %v", err, got)
		}
	}
	if got := read(t, l); got["a"] != 1 {
		t.Errorf("%v", got)
	}
}

// Lines and Newest read the facts of a time, whole changes only.
func TestWindow(t *testing.T) {
	dir, c := testkit.MemoryDir(t), newClock()
	l := open(dir, c.Now)
	for i := range 10 {
		c.now = c.now.Add(7 * time.Hour)
		add(t, l, put{"a", i}, gone{"x"})
	}
	since := c.now.Add(-20 * time.Hour)
	var forward, backward []int
	for line, err := range l.Lines(since, "test.put") {
		var f put
		if err != nil || line.Into(&f) != nil || line.Kind != "test.put" || line.At.Before(since) {
			t.Errorf("%v %+v", err, line)
		}
		forward = append(forward, f.Value)
	}
	for line, err := range l.Newest(since, "test.put") {
		var f put
		if err != nil || line.Into(&f) != nil {
			t.Errorf("%v %+v", err, line)
		}
		backward = append(backward, f.Value)
	}
	slices.Reverse(backward)
	if want := []int{7, 8, 9}; !slices.Equal(forward, want) || !slices.Equal(backward, want) {
		t.Errorf("%v %v", forward, backward)
	}
	for line := range l.Newest(time.Time{}) {
		if line.Kind != "test.gone" {
			t.Errorf("the newest is %+v", line)
		}
		break
	}
}

// A checkpoint of a large state is written again after as many bytes of facts as it has.
func TestLargeState(t *testing.T) {
	l := open(testkit.MemoryDir(t), newClock().Now)
	var facts []Fact
	for i := range 8 {
		facts = append(facts, put{strings.Repeat(fmt.Sprint(i), 60<<10), i})
	}
	add(t, l, facts...)
	before, err := os.Stat(l.checkpointPath())
	if err != nil || before.Size() < 8*60<<10 {
		t.Fatal(before, err)
	}
	wants := func(again bool) {
		t.Helper()
		if now, err := os.Stat(l.checkpointPath()); err != nil || os.SameFile(before, now) == again {
			t.Errorf("written again: %t, %v", !again, err)
		}
	}
	more := func(l *Ledger) {
		t.Helper()
		for range 3 {
			add(t, l, put{strings.Repeat("x", 60<<10), 1})
		}
	}
	more(l)
	wants(false)
	more(open(string(l.home), newClock().Now)) // another process knows the size, too
	wants(false)
	more(l)
	wants(true)
}

// TestLongLines: lines that are longer than what is read at once, and files that are longer than what is kept in memory, are read and trimmed
// as short ones.
func TestLongLines(t *testing.T) {
	t.Parallel()
	dir, c := testkit.MemoryDir(t), newClock()
	l, want := open(dir, c.Now), map[string]int{}
	for i := range 5 {
		long := strings.Repeat(fmt.Sprint(i), chunkSize+chunkSize/4)
		add(t, l, put{"n", i}, put{long, i}, gone{long}, put{"k" + fmt.Sprint(i), i})
		want["n"], want["k"+fmt.Sprint(i)] = i, i
	}
	if err := os.Remove(l.checkpointPath()); err != nil {
		t.Fatal(err)
	}
	for _, other := range []*Ledger{l, open(dir, c.Now)} {
		if got := read(t, other); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	c.now = c.now.Add(72 * time.Hour)
	add(t, l, put{"last", 1})
	want["last"] = 1
	if err := l.Trim(t.Context(), c.now); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(l.checkpointPath()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, open(dir, c.Now)); !maps.Equal(got, want) {
		t.Errorf("trimmed: %v, want %v", got, want)
	}
}

// TestNewBook: a book that a checkpoint does not have gets each fact once.
func TestNewBook(t *testing.T) {
	t.Parallel()
	type count struct{ N int }
	book := NewBook("count", On("test.put", func(s *count, _ time.Time, _ put) { s.N++ }))
	dir, c := testkit.MemoryDir(t), newClock()
	l := open(dir, c.Now)
	for i := range 6 {
		add(t, l, put{"a", i}, gone{"a"})
		if i == 2 {
			c.now = c.now.Add(24 * time.Hour)
		}
	}
	err := New(paths.Dir(dir), store.Disk{Now: c.Now, Warn: func(string) {}}, book).Read(func(v View) error {
		s, err := Of(v, book)
		if err == nil && s.N != 6 {
			t.Errorf("%d facts, want 6", s.N)
		}
		return errors.Join(err, os.ErrInvalid)
	})
	if !errors.Is(err, os.ErrInvalid) {
		t.Errorf("the error of the reader is lost: %v", err)
	}

	l = open(testkit.MemoryDir(t), c.Now)
	for i := range 6 {
		if i == 3 { // the mark is in the second part that is read at once, and so are the facts after it
			l.save()
		}
		add(t, l, put{strings.Repeat("x", chunkSize*2/3>>(i/3*9)), i})
	}
	err = New(l.home, l.disk, book).Read(func(v View) error {
		s, err := Of(v, book)
		if s.N != 6 {
			t.Errorf("%d facts of a long file, want 6", s.N)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// word and odd are facts that no line can hold.
type word string

func (word) Fact() string { return "test.word" }

type odd struct{ N float64 }

func (odd) Fact() string { return "test.odd" }

// TestNoFacts: what is no JSON object is refused, and nothing of its change is written.
func TestNoFacts(t *testing.T) {
	l := open(testkit.MemoryDir(t), newClock().Now)
	for _, f := range []Fact{word("x"), word(""), odd{math.NaN()}} {
		if err := l.Change(t.Context(), store.Buffered, func(tx *Tx) error { return tx.Add(put{"a", 1}, f) }); err == nil {
			t.Errorf("%v is accepted", f)
		}
	}
	if got := read(t, l); len(got) != 0 {
		t.Errorf("written: %v", got)
	}
}

// TestForeignLines: a line that is none of the ledger's stays, and so does what is no file of a day. A fact that its book cannot decode changes
// nothing. The facts after them count.
func TestForeignLines(t *testing.T) {
	dir, c := testkit.MemoryDir(t), newClock()
	l := open(dir, c.Now)
	add(t, l, put{"a", 1})
	add(t, l, put{"b", 2})
	path := l.path("2026-11-23")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte("garbage\n"), bytes.Replace(text, []byte(`"key":"a"`), []byte(`"key":[7]`), 1)...)
	damaged = append(damaged, "more garbage\n"...)
	for name, text := range map[string][]byte{path: damaged, l.path("copy"): text,
		filepath.Join(l.folder(), "2026-11-25"): text, filepath.Join(l.folder(), "2026-11-24.bak"): text} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Remove(l.checkpointPath())
	l = open(dir, c.Now)
	add(t, l, put{"c", 3})
	for _, l := range []*Ledger{l, open(dir, c.Now)} {
		if got := read(t, l); !maps.Equal(got, map[string]int{"b": 2, "c": 3}) {
			t.Errorf("%v", got)
		}
	}
	if days, err := l.days(); err != nil || !slices.Equal(days, []string{"2026-11-23"}) {
		t.Errorf("days %q, %v", days, err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(now, damaged) || bytes.Count(now, []byte{'\n'}) != 5 {
		t.Errorf("%v\n%s", err, now)
	}
}

// TestRestored: a process that knows a state sees that its files are gone or those of an earlier state.
func TestRestored(t *testing.T) {
	dir, c := testkit.MemoryDir(t), newClock()
	l := open(dir, c.Now)
	add(t, l, put{"a", 1})
	early, err := os.ReadFile(l.path("2026-11-23"))
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, put{"b", 2})
	_ = os.Remove(l.checkpointPath())
	if err := os.WriteFile(l.path("2026-11-23"), early, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(t, l); !maps.Equal(got, map[string]int{"a": 1}) {
		t.Errorf("an earlier state: %v", got)
	}
	if err := os.Remove(l.path("2026-11-23")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, l); len(got) != 0 {
		t.Errorf("no state: %v", got)
	}
}

// FuzzFile: whatever is in the file of today, reading it does not panic, and a change that is added is there.
func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	l := open(dir, newClock().Now)
	_ = l.Change(f.Context(), store.Buffered, func(tx *Tx) error { return tx.Add(put{"a", 1}, put{"b", 1}) })
	text, err := os.ReadFile(l.path("2026-11-23"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(append(text, '\n', 'x', '\n'))
	f.Add(text[:len(text)-40])
	f.Add([]byte("{}\n\n\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := testkit.MemoryDir(t)
		l := open(dir, newClock().Now)
		if err := store.MkdirOwn(l.folder()); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(l.path("2026-11-23"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		read(t, l)
		if _, _, err := l.Verify(); err != nil {
			t.Error(err)
		}
		add(t, l, put{"new", 7})
		if got := read(t, open(dir, newClock().Now)); got["new"] != 7 {
			t.Errorf("%v", got)
		}
	})
}
