//go:build !linux

package testkit

import (
	"errors"
	"os"
	"testing"
)

// OpenTerminal is for Linux.
func OpenTerminal() (keys, terminal *os.File, err error) {
	return nil, nil, errors.New("tests open terminals on Linux only")
}

// Terminal skips the test.
func Terminal(t testing.TB) (keys, terminal *os.File) {
	t.Helper()
	t.Skip("tests open terminals on Linux only")
	return nil, nil
}
