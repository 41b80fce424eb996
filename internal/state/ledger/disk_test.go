package ledger

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
)

// damaged is a call that TestEachFault makes on a ledger of three days, of which the first is only in the base: a is 1, then 2, then 3.
type damaged struct {
	knows bool                                       // the process has read the ledger before
	prep  func(t *testing.T, l *Ledger)              // what is on disk besides
	call  func(t *testing.T, l *Ledger) (any, error) // returns what it has read; nil if it only writes
	after map[string]int                             // state once the call has succeeded; nil: as before
}

// TestEachFault: whichever system call fails, a call of the ledger returns an error, or it has done all that it says. After an error the
// state is as before. Either way the ledger can be used, is as it was written, and no lock and no open file is left.
func TestEachFault(t *testing.T) {
	t.Parallel()
	before := map[string]int{"a": 3}
	for name, c := range damagedCalls() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var done []string // what the call has returned where it returned no error
			var last string
			for fault := range testkit.Faults(t, syscall.EIO) {
				dir, now := testkit.MemoryDir(t), newClock()
				l := threeDays(t, dir, now, c)
				var got any
				var err error
				files := len(openFiles(t, dir))
				fault.In(dir, func() { got, err = c.call(t, l) })
				for _, left := range openFiles(t, dir)[files:] {
					t.Errorf("%s fails: %s is left open", fault.Call, left)
				}
				if !lock.Free(paths.Dir(dir).Lock("ledger")) {
					t.Errorf("%s fails: the lock is left", fault.Call)
				}
				if err != nil && (fault.Call == "" || !errors.Is(err, syscall.EIO)) {
					t.Errorf("%q fails: %v", fault.Call, err)
				}
				if last = strings.ReplaceAll(fmt.Sprint(got), dir, "DIR"); err == nil {
					done = append(done, fault.Call+" fails: "+last)
				}
				want := c.after
				if err != nil || want == nil {
					want = before
				}
				other := open(dir, now.Now)
				for _, l := range []*Ledger{l, other} {
					if state := read(t, l); !maps.Equal(state, want) {
						t.Errorf("%s fails: %v, then the state is %v, want %v", fault.Call, err, state, want)
					}
				}
				add(t, l, put{"after", 1})
				if faults, _, err := other.Verify(); len(faults) > 0 || err != nil {
					t.Errorf("%s fails, then Verify says %v, %v", fault.Call, faults, err)
				}
			}
			for _, d := range done {
				if !strings.HasSuffix(d, " fails: "+last) {
					t.Errorf("no error: %s, want %s", d, last)
				}
			}
		})
	}
}

// threeDays makes the ledger that a damaged call gets.
func threeDays(t *testing.T, dir string, now *clock, c damaged) *Ledger {
	t.Helper()
	l := open(dir, now.Now)
	for i := range 3 {
		if i > 0 {
			now.now = now.now.Add(24 * time.Hour)
		}
		addSynced(t, l, put{"a", i + 1})
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

// openFiles lists the files below dir that this process has open.
func openFiles(t *testing.T, dir string) (open []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if path, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(path, dir+"/") {
			open = append(open, path)
		}
	}
	return open
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
			all = append(all, string(line.JSON))
		}
		return all, nil
	}
	noCheckpoint := func(t *testing.T, l *Ledger) {
		t.Helper()
		if err := os.Remove(l.checkpointPath()); err != nil {
			t.Fatal(err)
		}
	}
	nextDay := func(call func(*testing.T, *Ledger) (any, error)) func(*testing.T, *Ledger) (any, error) {
		return func(t *testing.T, l *Ledger) (any, error) {
			l.disk.Now = func() time.Time { return newClock().now.Add(72 * time.Hour) }
			return call(t, l)
		}
	}
	torn := func(t *testing.T, l *Ledger) {
		t.Helper()
		f, err := os.OpenFile(l.path("2026-11-25"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString(`{"at":"2026`)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	more := map[string]int{"a": 3, "b": 2}
	return map[string]damaged{
		"read":                          {call: state},
		"read again":                    {call: state, knows: true},
		"read without a checkpoint":     {call: state, prep: noCheckpoint},
		"change":                        {call: change(store.Buffered), after: more},
		"change again":                  {call: change(store.Buffered), after: more, knows: true},
		"synced change":                 {call: change(store.Synced), after: more, knows: true},
		"synced change after torn":      {call: change(store.Synced), after: more, prep: torn},
		"synced change of the next day": {call: nextDay(change(store.Synced)), after: more, knows: true},
		"lines":                         {call: lines},
		"trim":                          {call: func(t *testing.T, l *Ledger) (any, error) { return nil, l.Trim(t.Context(), l.disk.Now()) }},
		"verify": {call: func(_ *testing.T, l *Ledger) (any, error) {
			faults, n, err := l.Verify()
			return []any{faults, n}, err
		}},
	}
}
