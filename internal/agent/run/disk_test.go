package run_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit"
)

// damaged is a call that TestEachFault makes.
type damaged struct {
	engine *actor
	prep   func(t *testing.T, s *fixture)
	call   func(t *testing.T, s *fixture) (any, error) // in a thread of its own: it must not end the test
	of     func(*fixture) string                       // the directory or file whose calls fail; nil: the data directory
	ends   func(error) bool                            // reports whether it is the error without a fault; nil: there is none
}

// TestEachFault: whichever system call fails, a step of a run returns an error, or warns, or returns what it returns otherwise and leaves
// the files that it leaves otherwise. No file stays open, no lock of a run is held, and the next run works and leaves no money reserved.
func TestEachFault(t *testing.T) {
	t.Parallel()
	for name, c := range damagedCalls() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			unsaid := map[string]left{} // after faults about which nothing was said
			var last left
			for fault := range testkit.Faults(t, syscall.EIO) {
				s := newFixture(t, testkit.MemoryDir(t), c.engine)
				if err := s.Updates.Add(t.Context(), "so that there is a ledger", "x"); err != nil {
					t.Fatal(err)
				}
				if c.prep != nil {
					c.prep(t, s)
				}
				before := testkit.OpenFiles(t, string(s.Home))
				var got any
				var err error
				of := string(s.Home)
				if c.of != nil {
					of = c.of(s)
				}
				fault.In(of, func() { got, err = c.call(t, s) })
				for _, open := range testkit.OpenFiles(t, string(s.Home), before...) {
					t.Errorf("%s fails: %s is left open", fault.Call, open)
				}
				if record, ok := got.(runlog.Record); ok && record.ID != "" && !lock.Free(s.Home.RunLock(record.ID)) {
					t.Errorf("%s fails: the run's lock is left", fault.Call)
				}
				last = leaves(t, s, got)
				asEver := err == nil
				if c.ends != nil {
					asEver = c.ends(err) && !errors.Is(err, syscall.EIO)
				}
				if asEver && len(s.warned) == 0 {
					unsaid[fault.Call] = last
				} else if fault.Call == "" {
					t.Errorf("without a fault: %v, warned %q", err, s.warned)
				}
				s.isWhole(t, fault.Call)
			}
			delete(unsaid, "stat state/locks/session-main.lock") // a lock that cannot be looked at counts as held: the owner is busy
			delete(unsaid, "pread state/locks/job-a.lock")       // one that cannot be read names no run
			for call, l := range unsaid {
				if strings.HasPrefix(call, "fsync ") {
					t.Errorf("%s fails, and nothing is said", call)
				}
				l.compare(t, call, last)
			}
		})
	}
}

// isWhole checks that a run works after a fault, and that no other run has money reserved then.
func (s *fixture) isWhole(t *testing.T, fault string) {
	t.Helper()
	s.Engines = engines(plays(answered()...))
	r, err := s.Run(t.Context(), routine())
	if err != nil || r.Outcome != runlog.OK {
		t.Errorf("%s fails, then a run ends %s: %v", fault, r.Outcome, err)
	}
	if usd := s.reserved(t); usd != 0 {
		t.Errorf("%s fails, and after another run %v USD are reserved", fault, usd)
	}
}

// left is what a call has returned, as JSON, and the files of the data directory.
type left struct {
	got   string
	files map[string]string
}

// compare compares what a call left after a fault with what it leaves without.
func (l left) compare(t *testing.T, call string, want left) {
	t.Helper()
	if l.got != want.got {
		t.Errorf("%s fails, and nothing is said: returned\n%s\nwant\n%s", call, l.got, want.got)
	}
	for path := range want.files {
		if got, want := difference(l.files[path], want.files[path]); got != want {
			t.Errorf("%s fails, and nothing is said: %s has\n%s\nwant\n%s", call, path, got, want)
		}
	}
}

// difference returns the first lines in which two texts differ.
func difference(a, b string) (inA, inB string) {
	for a != b {
		inA, a, _ = strings.Cut(a, "\n")
		inB, b, _ = strings.Cut(b, "\n")
		if inA != inB {
			return inA, inB
		}
	}
	return "", ""
}

// leaves returns what a call has left, without the hashes of the ledger's lines, which lead from one line to the next.
func leaves(t *testing.T, s *fixture, got any) left {
	t.Helper()
	dir, skipped := string(s.Home), regexp.MustCompile(`,"hash":"[0-9a-f]*"`)
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	plain := func(text []byte) string {
		return skipped.ReplaceAllString(strings.ReplaceAll(string(text), dir, "DIR"), "")
	}
	l := left{plain(text), map[string]string{}}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "head.json" {
			return err
		}
		text, err := os.ReadFile(path)
		l.files[strings.ReplaceAll(strings.TrimPrefix(path, dir+"/"), strings.ReplaceAll(dir, "/", "-"), "DIR")] = plain(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
