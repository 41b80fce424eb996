// Package storetest is the conformance test of packages that keep state in files with package store. It tests a busy or
// broken lock, a disk that cannot be written or fails once, a damaged file, several concurrent processes and a kill -9.
package storetest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// Act changes a store in the data directory dir and passes its warnings to warn. An act that fails returns an error.
type Act func(ctx context.Context, dir string, warn func(string)) error

// Store is a store and its operations.
type Store struct {
	File func(dir string) string // the path of the store's file
	Lock func(dir string) string // the path of its lock; nil: the store has no lock
	Busy error                   // the error if another process holds the lock

	// Acts are the changes under the lock, by name. Each must change something after one Add.
	Acts      map[string]Act
	Elsewhere []string // acts that change nothing below File

	// Add adds one item, different from those of all other calls and processes, and Count returns the number of items.
	// Without Count the store holds one item, and concurrent processes are not tested.
	Add   func(ctx context.Context, dir string, warn func(string), item string) error
	Count func(dir string, warn func(string)) (int, error)

	// Corrupt lists contents of the file that cannot be parsed. The next Add sets such a file aside.
	Corrupt []string
	Aside   string // what the name of such a file ends in, a pattern of path.Match; "" is .corrupt-*
}

// Run tests the store. The calling test must do nothing else: its child processes run it again, to add items.
func Run(t *testing.T, s Store) {
	t.Helper()
	if dir := os.Getenv(dirVar); dir != "" {
		s.addUntilTheEnd(dir)
		return
	}
	if s.Lock != nil {
		t.Run("busy", s.busy)
		t.Run("no lock", s.noLock)
	}
	t.Run("not written", s.notWritten)
	t.Run("faults", s.faults)
	t.Run("corrupt", s.corrupt)
	if s.Count != nil {
		t.Run("processes", s.processes)
		t.Run("killed", s.killed)
	}
}

// acts returns all changes, for tests in which none can succeed.
func (s Store) acts() map[string]Act {
	all := maps.Clone(s.Acts)
	if all == nil {
		all = map[string]Act{}
	}
	all["Add"] = func(ctx context.Context, dir string, warn func(string)) error {
		return s.Add(ctx, dir, warn, "another")
	}
	return all
}

// begin returns a data directory with one item.
func (s Store) begin(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := s.Add(t.Context(), dir, complain(t), "first"); err != nil {
		t.Fatal(err)
	}
	return dir
}

func complain(t *testing.T) func(string) {
	return func(text string) { t.Errorf("warned: %s", text) }
}

// refuse tries every act. Each must fail with an error that good accepts, and change nothing.
func (s Store) refuse(ctx context.Context, t *testing.T, dir string, good func(error) bool) {
	t.Helper()
	before := s.contents(t, dir)
	for name, act := range s.acts() {
		if err := act(ctx, dir, complain(t)); err == nil || !good(err) {
			t.Errorf("%s: %v", name, err)
		}
		if after := s.contents(t, dir); !maps.Equal(after, before) {
			t.Errorf("%s changed\n%q\nto\n%q", name, before, after)
		}
	}
}

// contents returns the texts of all files of the store.
func (s Store) contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(s.File(dir), func(path string, e os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) && path == s.File(dir) { // an act has removed it
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// busy: while another process holds the lock, a change whose context has ended fails at once.
func (s Store) busy(t *testing.T) {
	dir := s.begin(t)
	f, err := os.OpenFile(s.Lock(dir), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil { //nolint:gosec // a descriptor
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.refuse(ctx, t, dir, func(err error) bool { return strings.Contains(err.Error(), s.Busy.Error()) })
}

// noLock: without its lock the store is not changed.
func (s Store) noLock(t *testing.T) {
	dir := s.begin(t)
	_ = os.Remove(s.Lock(dir))
	if err := os.MkdirAll(s.Lock(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	s.refuse(t.Context(), t, dir, func(err error) bool { return strings.Contains(err.Error(), ": cannot lock: ") })
}

// notWritten: a change that does not reach the disk is an error, and the old content is kept.
func (s Store) notWritten(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	dir := s.begin(t)
	for path := range s.contents(t, dir) {
		chmod(t, path, 0o400)
	}
	folder := filepath.Dir(s.File(dir))
	if info, err := os.Stat(s.File(dir)); err == nil && info.IsDir() {
		folder = s.File(dir)
	}
	chmod(t, folder, 0o500)
	t.Cleanup(func() { chmod(t, folder, 0o700) })
	s.refuse(t.Context(), t, dir, func(err error) bool { return strings.Contains(err.Error(), "permission denied") })
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Error(err)
	}
}

// corrupt: a file that cannot be parsed is reported, left alone by readers, and set aside by the next change.
func (s Store) corrupt(t *testing.T) {
	for _, text := range s.Corrupt {
		dir := s.begin(t)
		if err := os.WriteFile(s.File(dir), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var warned []string
		warn := func(text string) { warned = append(warned, text) }
		before := s.contents(t, dir)
		_, _ = s.Count(dir, warn)
		if after := s.contents(t, dir); !maps.Equal(after, before) {
			t.Errorf("%q: reading changed it to %q", text, after)
		}
		warned = nil
		if err := s.Add(t.Context(), dir, warn, "after"); err != nil || len(warned) != 1 {
			t.Errorf("%q: %v, warned %q", text, err, warned)
		}
		if n, err := s.Count(dir, complain(t)); n != 1 || err != nil {
			t.Errorf("%q: %d items after the change, %v", text, n, err)
		}
		aside := s.aside(dir)
		if len(aside) != 1 {
			t.Fatalf("%q: set aside as %q", text, aside)
		}
		if kept, err := os.ReadFile(aside[0]); err != nil || string(kept) != text {
			t.Errorf("%q was kept as %q, %v", text, kept, err)
		}
	}
}

// aside returns the files that were set aside.
func (s Store) aside(dir string) []string {
	found, _ := filepath.Glob(s.File(dir) + cmp.Or(s.Aside, ".corrupt-*"))
	return found
}

// processes: items that several processes add at once are all there, and each process ends without an error.
func (s Store) processes(t *testing.T) {
	dir := t.TempDir()
	const most, each = 6, 8
	var all []*adder
	for range most {
		all = append(all, start(t, dir))
	}
	for _, a := range all {
		a.until(t, each)
		a.stop(t)
	}
	added := 0
	for _, a := range all {
		added += a.end(t)
	}
	if n, err := s.Count(dir, complain(t)); n != added || err != nil || added < most*each {
		t.Errorf("%d items, %v; %d were added", n, err, added)
	}
}

// killed: after kill -9 all added items are there, and the store still works.
func (s Store) killed(t *testing.T) {
	dir := t.TempDir()
	added, kills := 0, 0
	for ; kills < 8; kills++ {
		a := start(t, dir)
		a.until(t, 1+kills%3)
		if err := a.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		added += a.end(t)
	}
	n, err := s.Count(dir, complain(t))
	if err != nil || n < added || n > added+kills {
		t.Errorf("%d items, %v; %d were added, %d processes killed", n, err, added, kills)
	}
	if err := s.Add(t.Context(), dir, complain(t), "last"); err != nil {
		t.Error(err)
	}
	if again, err := s.Count(dir, complain(t)); again != n+1 || err != nil {
		t.Errorf("%d items, %v, after one more than %d", again, err, n)
	}
	if aside := s.aside(dir); len(aside) > 0 {
		t.Errorf("set aside after a kill: %q", aside)
	}
}
