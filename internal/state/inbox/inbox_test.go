package inbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/payload"
)

// world is an inbox with a clock of its own.
type world struct {
	Book
	t     testing.TB
	now   time.Time
	made  int
	ids   sync.Mutex
	known map[string]bool // the runs of the entries that were added
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), known: map[string]bool{}}
	w.Book = Book{
		Home: paths.Dir(t.TempDir()), Zone: time.UTC, Limits: LimitsOf(100, 1),
		Disk:   store.Disk{Now: func() time.Time { return w.now }, Warn: func(m string) { t.Error(m) }, Locks: &lock.Table{}},
		NewRun: w.newRun,
		Runs: func(time.Time) (ids []string, err error) {
			files, err := os.ReadDir(w.Home.Runs())
			for _, f := range files {
				ids = append(ids, f.Name())
			}
			if errors.Is(err, os.ErrNotExist) {
				err = nil
			}
			return ids, err
		},
	}
	return w
}

func (w *world) newRun() (string, error) {
	w.ids.Lock()
	defer w.ids.Unlock()
	w.made++
	return fmt.Sprintf("run-%d", w.made), nil
}

func (w *world) receive() *Receiver {
	w.t.Helper()
	r, err := w.Receive()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(r.Close)
	return r
}

// sent is an entry of hook ci; Hash stands for the body.
func sent(delivery, body string) Entry {
	return Entry{Hook: "ci", Delivery: delivery, Hash: body, Data: []payload.Datum{{Key: "name", Value: json.RawMessage(`"a <b> & 1.50"`)}}}
}

// adds adds an entry and expects the id of a run: of a new one exactly if this is the first time that the id is expected.
func (w *world) adds(r *Receiver, e Entry, want string) {
	w.t.Helper()
	run, isNew, err := r.Add(w.t.Context(), e)
	if run != want || err != nil || isNew == w.known[run] {
		w.t.Errorf("%s %s: %q, new %t, %v, want %s", e.Delivery, e.Hash, run, isNew, err, want)
	}
	w.known[run] = true
}

// rejects adds an entry and expects an error.
func (w *world) rejects(r *Receiver, e Entry, want error) {
	w.t.Helper()
	if run, _, err := r.Add(w.t.Context(), e); run != "" || !errors.Is(err, want) {
		w.t.Errorf("%s %s: %q, %v, want %v", e.Delivery, e.Hash, run, err, want)
	}
}

// take gives the oldest entry of a hook to its run.
func (w *world) take(hook string) Entry {
	w.t.Helper()
	e, _, err := w.First(hook)
	if err == nil {
		err = os.MkdirAll(w.Home.Run(e.Run), 0o700)
	}
	if err == nil {
		err = w.Claim(e)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func TestOrder(t *testing.T) {
	w := newWorld(t)
	r := w.receive()
	for i := range 20 {
		if i == 10 { // the clock is set back, and the server restarts
			w.now = w.now.Add(-time.Hour)
			r.Close()
			r = w.receive()
		}
		w.adds(r, sent(fmt.Sprint("d", i), fmt.Sprint("b", i)), fmt.Sprint("run-", i+1))
	}
	first := w.take("ci")
	if err := w.GiveBack(first); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		e := w.take("ci")
		if e.Run != fmt.Sprint("run-", i+1) || string(e.Data[0].Value) != `"a <b> & 1.50"` {
			t.Errorf("entry %d is %+v", i, e)
		}
		if err := w.Claim(e); !errors.Is(err, ErrGone) || w.Waits(e.Run) {
			t.Errorf("it is taken twice: %v", err)
		}
	}
	if _, _, err := w.First("ci"); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}

// TestSentAgain: an event is recognised for a day, whether it waits or ran, and after a restart.
func TestSentAgain(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := newWorld(t)
		r := w.receive()
		check := func(e Entry, want string, err error) {
			t.Helper()
			if restarts {
				r.Close()
				r = w.receive()
			}
			if err != nil {
				w.rejects(r, e, err)
			} else {
				w.adds(r, e, want)
			}
		}
		check(sent("a", "1"), "run-1", nil)
		check(sent("a", "1"), "run-1", nil)
		check(sent("a", "2"), "", ErrConflict)
		check(sent("replayed", "1"), "run-1", nil)
		check(sent("", "1"), "run-1", nil)
		other := sent("a", "1")
		other.Hook = "deploy"
		check(other, "run-2", nil)
		w.take("ci")
		check(sent("a", "1"), "run-1", nil)
		check(sent("a", "2"), "", ErrConflict)
		signed := sent("s", "3")
		signed.Signed = true
		check(signed, "run-3", nil)
		signed.Delivery = "t"
		check(signed, "run-4", nil)
		w.now = w.now.Add(24*time.Hour - time.Second)
		check(sent("a", "1"), "run-1", nil)
		w.now = w.now.Add(time.Second)
		check(sent("a", "1"), "run-5", nil)
	}
}

// TestSameBody: a sender that proves the whole request and gives no id sends the same body on purpose, so it is the same event within
// a minute only: one that could not read the answer has tried again by then.
func TestSameBody(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := newWorld(t)
		r := w.receive()
		check := func(after time.Duration, want string) {
			t.Helper()
			if restarts {
				r.Close()
				r = w.receive()
			}
			w.now = w.now.Add(after)
			e := sent("", "doorbell")
			e.Signed = true
			w.adds(r, e, want)
		}
		check(0, "run-1")
		check(time.Second, "run-1")
		check(58*time.Second, "run-1")
		check(time.Second, "run-2")
		check(59*time.Second, "run-2")
		check(time.Hour, "run-3")
		check(-2*time.Hour, "run-4")             // the clock is set back
		w.adds(r, sent("", "doorbell"), "run-4") // of a sender whose requests others can copy
		w.now = w.now.Add(time.Hour)
		w.adds(r, sent("", "doorbell"), "run-4")
	}
}

func TestLimits(t *testing.T) {
	w := newWorld(t)
	w.Limits = limits{All: 3, Hook: 2}
	r := w.receive()
	other := func(n string) Entry {
		e := sent(n, n)
		e.Hook = "deploy"
		return e
	}
	w.adds(r, sent("a", "a"), "run-1")
	w.adds(r, sent("b", "b"), "run-2")
	w.rejects(r, sent("c", "c"), ErrHookFull)
	w.adds(r, sent("b", "b"), "run-2") // one that was accepted still is
	w.adds(r, other("d"), "run-3")
	w.rejects(r, other("e"), ErrFull)
	w.take("ci")
	w.now = w.now.Add(time.Second)
	w.adds(r, other("e"), "run-4")
	w.take("ci")
	w.now = w.now.Add(time.Second)
	w.adds(r, sent("f", "f"), "run-5")
}

// TestNotWritten: an event that could not be written was not accepted, and can be sent again.
func TestNotWritten(t *testing.T) {
	w := newWorld(t)
	r := w.receive()
	if err := os.MkdirAll(w.Home.Inbox(), 0o700); err != nil {
		t.Fatal(err)
	}
	blocked := w.folder("ci")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if run, _, err := r.Add(t.Context(), sent("a", "1")); !errors.As(err, new(*store.NotWritten)) {
		t.Errorf("%q, %v", run, err)
	}
	if len(r.ages) != 0 || len(r.events) != 0 {
		t.Error("it is remembered")
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	w.adds(r, sent("a", "1"), "run-2")
}

// TestAddAtOnce: of the same event, sent many times at once, there is one entry.
func TestAddAtOnce(t *testing.T) {
	w := newWorld(t)
	r := w.receive()
	runs := make([]string, 40)
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			run, _, err := r.Add(t.Context(), sent(fmt.Sprint(i%8), fmt.Sprint(i%8)))
			if err != nil {
				t.Error(err)
			}
			runs[i] = run
		})
	}
	all.Wait()
	for i, run := range runs {
		if run != runs[i%8] {
			t.Errorf("%d has %s, %d has %s", i, run, i%8, runs[i%8])
		}
	}
	if entries, err := w.Contents(); len(entries) != 8 || err != nil {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// TestForeignFiles: drafts and other files are no entries; a damaged entry is set aside and does not hide the others.
func TestForeignFiles(t *testing.T) {
	w := newWorld(t)
	r := w.receive()
	w.adds(r, sent("a", "1"), "run-1")
	w.adds(r, sent("b", "2"), "run-2")
	first, _, err := w.First("ci")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".0000000000001-x.json.tmp-1", "notes.txt", "1-x.json"} {
		if err := os.WriteFile(filepath.Join(w.folder("ci"), name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(w.path(first), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var warned []string
	w.Disk.Warn = func(m string) { warned = append(warned, m) }
	if e, waiting, err := w.First("ci"); e.Run != "run-2" || waiting != 1 || err != nil || len(warned) != 1 {
		t.Errorf("%+v, %d, %v, %q", e, waiting, err, warned)
	}
}

func TestOneReceiver(t *testing.T) {
	w := newWorld(t)
	w.receive()
	if _, err := w.Receive(); !errors.Is(err, lock.ErrBusy) {
		t.Error(err)
	}
}

// TestSimilarIDs: what is noted of one webhook is not in the way of another, whatever their ids.
func TestSimilarIDs(t *testing.T) {
	w := newWorld(t)
	r := w.receive()
	for i, hook := range []string{"ci", "ci.json", "starts.json"} {
		e := sent("a", "1")
		e.Hook = hook
		w.adds(r, e, fmt.Sprint("run-", i+1))
		if err := w.NoteStarts(hook, Starts{Run: hook}); err != nil {
			t.Error(err)
		}
	}
	for _, hook := range []string{"ci", "ci.json", "starts.json"} {
		if s, err := w.Starts(hook); s.Run != hook || err != nil {
			t.Errorf("%s: %+v, %v", hook, s, err)
		}
		if err := w.Prune(hook, w.now.Add(time.Hour)); err != nil {
			t.Error(err)
		}
	}
	if hooks, err := w.Hooks(); len(hooks) > 0 || err != nil {
		t.Errorf("left: %q, %v", hooks, err)
	}
}

// TestUnreadableEntry: an entry that cannot be read keeps the receiver from nothing but knowing it.
func TestUnreadableEntry(t *testing.T) {
	w := newWorld(t)
	r := w.receive()
	w.adds(r, sent("a", "1"), "run-1")
	r.Close()
	if err := os.MkdirAll(filepath.Join(w.folder("broken"), "0000000000001-x.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	var warned []string
	w.Disk.Warn = func(m string) { warned = append(warned, m) }
	r = w.receive()
	w.adds(r, sent("a", "1"), "run-1")
	w.adds(r, sent("b", "2"), "run-2")
	if len(warned) != 1 {
		t.Errorf("%q", warned)
	}
}
