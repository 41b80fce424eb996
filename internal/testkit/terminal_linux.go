package testkit

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// OpenTerminal returns a new terminal, and its keys, to which a test writes what is typed and from which it reads what is shown.
func OpenTerminal() (keys, terminal *os.File, err error) {
	keys, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		_ = keys.Close()
		return nil, nil, err
	}
	return keys, terminal, nil
}

// Terminal is OpenTerminal for a test that ends with it. Where there are no terminals the test is skipped, or fails if CI=true.
func Terminal(t testing.TB) (keys, terminal *os.File) {
	t.Helper()
	keys, terminal, err := OpenTerminal()
	if err != nil {
		Missing(t, "no pseudo-terminal: mount devpts at /dev/pts: %v", err)
	}
	t.Cleanup(func() { _ = keys.Close() }) // the terminal may still be read
	return keys, terminal
}
