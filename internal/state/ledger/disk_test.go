package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// damaged is a call that TestEachFault makes, on a ledger of three days of which the first is only in the base: a is 1, then 2, then 3.
type damaged struct {
	empty  bool                                       // there are no facts yet
	knows  bool                                       // the process has read the ledger before
	prep   func(t *testing.T, l *Ledger)              // what is on disk besides, and what is to be imported
	call   func(t *testing.T, l *Ledger) (any, error) // returns what it has read; nil if it only writes
	before map[string]int                             // state before the call, and after an error; nil: a is 3
	after  map[string]int                             // state once the call has succeeded; nil: as before
	syncs  []string                                   // what a change waits for, in order
	spoilt bool                                       // facts were removed, so Verify finds a fault
}

// TestEachFault: whichever system call fails, a call of the ledger returns an error, or it has done all that it says. After an error the
// state is as before; if all later calls failed too, the change may be there as a whole. Either way the ledger can be used, is as it was
// written, and no lock and no open file is left.
func TestEachFault(t *testing.T) {
	t.Parallel()
	for name, c := range damagedCalls() {
		if c.before == nil {
			c.before = map[string]int{"a": 3}
		}
		if c.after == nil {
			c.after = c.before
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var done, syncs []string // what the call has returned where it returned no error; what it has synced
			var last string
			for fault := range testkit.EachFault(t, syscall.EIO) {
				got, err := c.try(t, fault)
				if last = got; err == nil {
					done = append(done, fault.Call+" fails: "+got)
				}
				if path, ok := strings.CutPrefix(fault.Call, "fsync "); ok && !fault.Gone {
					path, _, _ = strings.Cut(path, ".tmp-") // and a random number
					syncs = append(syncs, path)
				}
			}
			for _, d := range done {
				if !strings.HasSuffix(d, " fails: "+last) {
					t.Errorf("no error: %s, want %s", d, last)
				}
			}
			if c.syncs != nil && !slices.Equal(syncs, c.syncs) {
				t.Errorf("it waits for %q, want %q", syncs, c.syncs)
			}
		})
	}
}

// try makes the call with a fault and checks what it leaves. It returns what the call has returned.
func (c damaged) try(t *testing.T, fault *testkit.Fault) (said string, err error) {
	t.Helper()
	dir, now := testkit.MemoryDir(t), newClock()
	l := c.ledger(t, dir, now)
	var got any
	files := testkit.OpenFiles(t, dir)
	fault.In(dir, func() { got, err = c.call(t, l) })
	for _, left := range testkit.OpenFiles(t, dir, files...) {
		t.Errorf("%s fails: %s is left open", fault.Call, left)
	}
	if !lock.Free(paths.Dir(dir).Lock("ledger")) {
		t.Errorf("%s fails: the lock is left", fault.Call)
	}
	if err != nil && (fault.Call == "" || !errors.Is(err, syscall.EIO)) {
		t.Errorf("%q fails: %v", fault.Call, err)
	}
	verb, path, _ := strings.Cut(fault.Call, " ")
	writes := c.syncs != nil && (verb == "write" || verb == "fsync") && strings.HasPrefix(path, "state/ledger/20")
	if notWritten := (*store.NotWritten)(nil); writes && !errors.As(err, &notWritten) {
		t.Errorf("%s fails: %v", fault.Call, err)
	}
	want, or := c.after, c.after
	if err != nil {
		want = c.before
	}
	if err != nil && !fault.Gone {
		or = c.before
	}
	other := open(dir, now.Now)
	other.Imports = l.Imports
	for _, l := range []*Ledger{l, other} {
		if state := read(t, l); !maps.Equal(state, want) && !maps.Equal(state, or) {
			t.Errorf("%s fails: %v, then the state is %v, want %v", fault.Call, err, state, want)
		}
	}
	add(t, l, put{"after", 1})
	if faults, _, err := other.Verify(); err != nil || len(faults) > 0 != c.spoilt {
		t.Errorf("%s fails, then Verify says %v, %v", fault.Call, faults, err)
	}
	return strings.ReplaceAll(fmt.Sprint(got), dir, "DIR"), err
}

// ledger makes the ledger that the call gets.
func (c damaged) ledger(t *testing.T, dir string, now *clock) *Ledger {
	t.Helper()
	l := open(dir, now.Now)
	for i := range 3 {
		if i > 0 {
			now.now = now.now.Add(24 * time.Hour)
		}
		if !c.empty {
			addSynced(t, l, put{"a", i + 1})
		}
	}
	if err := l.Trim(t.Context(), now.now.Add(-24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if c.prep != nil {
		c.prep(t, l)
	}
	imports := l.Imports
	if l = open(dir, now.Now); c.knows {
		read(t, l)
	}
	l.Imports = imports
	return l
}

func damagedCalls() map[string]damaged {
	state := func(_ *testing.T, l *Ledger) (got any, err error) {
		err = l.Read(func(v View) error {
			s, err := Of(v, testBook("values"))
			if err == nil {
				got = maps.Clone(s.All)
			}
			return err
		})
		return got, err
	}
	change := func(d store.Durability) func(t *testing.T, l *Ledger) (any, error) {
		return func(t *testing.T, l *Ledger) (any, error) {
			return nil, l.Change(t.Context(), d, func(tx *Tx) error { return tx.Add(put{"b", 2}, gone{"x"}) })
		}
	}
	lines := func(_ *testing.T, l *Ledger) (any, error) {
		var all []string
		for line, err := range l.Lines(time.Time{}) {
			if err != nil {
				return nil, err
			}
			var f put
			if err := line.Into(&f); err != nil {
				return nil, err
			}
			all = append(all, fmt.Sprint(line.Kind, f))
		}
		return all, nil
	}
	trim := func(t *testing.T, l *Ledger) (any, error) { return nil, l.Trim(t.Context(), l.disk.Now()) }
	verify := func(_ *testing.T, l *Ledger) (any, error) {
		faults, n, err := l.Verify()
		return []any{faults, n}, err
	}
	nextDay := func(t *testing.T, l *Ledger) (any, error) {
		l.disk.Now = func() time.Time { return newClock().now.Add(72 * time.Hour) }
		return change(store.Synced)(t, l)
	}
	const third, fourth, folder = "state/ledger/2026-11-25.jsonl", "state/ledger/2026-11-26.jsonl", "state/ledger"
	noCheckpoint := func(t *testing.T, l *Ledger) { replace(t, l.checkpointPath(), "") }
	noBooks := func(t *testing.T, l *Ledger) {
		text, err := json.Marshal(checkpoint{At: l.view.at})
		if err != nil {
			t.Fatal(err)
		}
		replace(t, l.checkpointPath(), string(text))
	}
	torn := func(t *testing.T, l *Ledger) {
		text, err := os.ReadFile(l.path("2026-11-25"))
		if err != nil {
			t.Fatal(err)
		}
		replace(t, l.path("2026-11-25"), string(text)+`{"at":"2026`)
	}
	removed := func(t *testing.T, l *Ledger) { replace(t, l.path("2026-11-25"), "") }
	imports := func(t *testing.T, l *Ledger) {
		noBooks(t, l)
		from := l.home.State("queue", "q.json")
		if err := store.Replace(from, []byte("7")); err != nil {
			t.Fatal(err)
		}
		l.Imports = []Import{{Store: "queue", Former: []string{"queue/*.json"}, Add: func(tx *Tx) error {
			text, err := os.ReadFile(from)
			if err != nil {
				return err
			}
			return tx.Add(put{"q", int(text[0] - '0')})
		}}}
	}
	more, imported := map[string]int{"a": 3, "b": 2}, map[string]int{"a": 3, "q": 7}
	return map[string]damaged{
		"read":                          {call: state},
		"read again":                    {call: state, knows: true},
		"read without a checkpoint":     {call: state, prep: noCheckpoint},
		"read without books":            {call: state, prep: noBooks},
		"read and import":               {call: state, prep: imports, before: imported},
		"first change":                  {call: change(store.Synced), empty: true, before: map[string]int{}, after: map[string]int{"b": 2}, syncs: []string{"state", folder + "/.head.json", folder, third, folder}},
		"change":                        {call: change(store.Buffered), after: more, syncs: []string{}},
		"change again":                  {call: change(store.Buffered), after: more, knows: true, syncs: []string{}},
		"change without books":          {call: change(store.Buffered), after: more, prep: noBooks, syncs: []string{}},
		"change and import":             {call: change(store.Buffered), prep: imports, before: imported, after: map[string]int{"a": 3, "b": 2, "q": 7}},
		"synced change":                 {call: change(store.Synced), after: more, knows: true, syncs: []string{third}},
		"synced change after torn":      {call: change(store.Synced), after: more, prep: torn, syncs: []string{third}},
		"synced change of the next day": {call: nextDay, after: more, knows: true, syncs: []string{fourth, third, folder}},
		"lines":                         {call: lines},
		"lines and import":              {call: lines, prep: imports, before: imported},
		"trim":                          {call: trim},
		"trim without books":            {call: trim, prep: noBooks},
		"trim before the import":        {call: trim, prep: imports, before: imported},
		"verify":                        {call: verify},
		"verify what was removed":       {call: verify, prep: removed, before: map[string]int{"a": 2}, spoilt: true},
	}
}

// replace makes a file with a text; it removes it if the text is empty.
func replace(t *testing.T, path, text string) {
	t.Helper()
	err := os.Remove(path)
	if text != "" {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
