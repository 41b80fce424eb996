package testkit

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// Script is the test to which a server belongs that a shell script starts as a program of its own. What the server complains of goes
// to standard error.
type Script struct {
	testing.TB

	cleanups []func()
	failed   bool
}

// Helper implements testing.TB.
func (*Script) Helper() {}

// Cleanup implements testing.TB. The functions are called by End, the last one first.
func (s *Script) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// Errorf implements testing.TB.
func (s *Script) Errorf(format string, args ...any) {
	s.failed = true
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// Fatalf implements testing.TB.
func (s *Script) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	os.Exit(1)
}

// End ends the program, with status 1 if the server complained.
func (s *Script) End() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
	if s.failed {
		os.Exit(1)
	}
}
