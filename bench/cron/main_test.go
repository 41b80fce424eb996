package main

import (
	"testing"
	"time"
)

// TestAgree has the three find the same twenty fires after each instant: only then is it the same work that is measured.
func TestAgree(t *testing.T) {
	at, err := instants()
	if err != nil {
		t.Fatal(err)
	}
	all := subjects()
	for _, expr := range expressions() {
		for _, start := range at {
			want := fires(t, all[0], expr, start)
			for _, s := range all[1:] {
				if got := fires(t, s, expr, start); !same(got, want) {
					t.Errorf("%q after %v:\n%s %v\n%s %v", expr, start, s.name, got, all[0].name, want)
				}
			}
		}
	}
}

// fires is up to twenty fires of the next half year, in which clocks may change but none of these times is touched, or the first one.
func fires(t *testing.T, s subject, expr string, after time.Time) (list []time.Time) {
	t.Helper()
	next, err := s.read(expr)
	if err != nil {
		t.Fatalf("%s: %q: %v", s.name, expr, err)
	}
	end := after.AddDate(0, 6, 0)
	for at := after; len(list) < 20 && (len(list) == 0 || at.Before(end)); {
		if at, err = next(at); err != nil {
			t.Fatalf("%s: %q after %v: %v", s.name, expr, after, err)
		}
		list = append(list, at)
	}
	return list
}

func same(a, b []time.Time) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}
