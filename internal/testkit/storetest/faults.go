package storetest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// faults: whichever system call fails, alone or with all after it, an act returns an error or has changed the store, and a reader says so or
// returns the right number. An item is there or not, nothing is set aside as damaged, no file stays open, and the next item is added as always.
func (s Store) faults(t *testing.T) {
	for name, act := range s.acts() {
		if name != "Add" && slices.Contains(s.Elsewhere, name) {
			continue
		}
		var silent []string // calls whose failure changes nothing and is no error
		for fault := range testkit.EachFault(t, syscall.EIO) {
			dir := s.begin(t)
			before, files := s.contents(t, dir), testkit.OpenFiles(t, dir)
			var err error
			fault.In(dir, func() { err = act(t.Context(), dir, func(string) {}) })
			if err != nil && !errors.Is(err, syscall.EIO) && !strings.Contains(err.Error(), syscall.EIO.Error()) {
				t.Errorf("%s, %q fails: %v", name, fault.Call, err)
			}
			if err == nil && maps.Equal(before, s.contents(t, dir)) {
				silent = append(silent, fault.Call)
			}
			for _, left := range testkit.OpenFiles(t, dir, files...) {
				t.Errorf("%s, %q fails: %s is left open", name, fault.Call, left)
			}
			if aside := s.aside(dir); len(aside) > 0 {
				t.Errorf("%s, %q fails: set aside %q", name, fault.Call, aside)
			}
			if name == "Add" {
				s.usable(t, dir, fault.Call, err)
			}
		}
		if len(silent) > 0 && !slices.Contains(s.Elsewhere, name) {
			t.Errorf("%s: %q fail: no error, and nothing is changed", name, silent)
		}
	}
	if s.Count != nil {
		s.misread(t)
	}
}

// usable checks that an item in whose writing a call has failed is there if its call has returned no error, and that the next one is added.
func (s Store) usable(t *testing.T, dir, call string, failed error) {
	t.Helper()
	n := 1
	if s.Count != nil {
		var err error
		if n, err = s.Count(dir, complain(t)); err != nil || n < 1 || n > 2 || failed == nil && n != 2 {
			t.Errorf("%q fails: %v, then there are %d items, %v", call, failed, n, err)
		}
	}
	if err := s.Add(t.Context(), dir, complain(t), "last"); err != nil {
		t.Errorf("%q fails, and so does the next item: %v", call, err)
	}
	if s.Count != nil {
		if now, err := s.Count(dir, complain(t)); now != n+1 || err != nil {
			t.Errorf("%q fails, then there are %d items, %v, after one more than %d", call, now, err, n)
		}
	}
}

// misread: a reader that cannot read returns an error, warns, or returns the right number.
func (s Store) misread(t *testing.T) {
	dir := s.begin(t)
	before := s.contents(t, dir)
	for fault := range testkit.EachFault(t, syscall.EIO) {
		var n, warned int
		var err error
		fault.In(dir, func() { n, err = s.Count(dir, func(string) { warned++ }) })
		if err == nil && warned == 0 && n != 1 {
			t.Errorf("reading, %q fails: no error, no warning, and %d items", fault.Call, n)
		}
		if now := s.contents(t, dir); !maps.Equal(now, before) {
			t.Errorf("reading, %q fails: changed\n%q\nto\n%q", fault.Call, before, now)
		}
	}
}
