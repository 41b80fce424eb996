package process

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Notifier returns a function that reports states of this process to the service manager by the protocol of sd_notify(3), one for each
// argument, such as READY=1. socket is the value of NOTIFY_SOCKET; if it is "", the function does nothing. It ignores errors.
func Notifier(socket string) func(states ...string) {
	if socket == "" {
		return func(...string) {}
	}
	if strings.HasPrefix(socket, "@") {
		socket = "\x00" + socket[1:]
	}
	return func(states ...string) {
		c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		lines := strings.Join(states, "\n")
		_, _ = c.Write([]byte(lines))
	}
}

// firstPassed is the first descriptor that a service manager passes.
const firstPassed = 3

// Listeners returns the listening sockets that a service manager passed to this process by the protocol of sd_listen_fds(3); none without
// a service manager. lookup reads the environment. Children of this process do not inherit the sockets.
func Listeners(lookup func(string) (string, bool)) ([]net.Listener, error) {
	pid, _ := lookup("LISTEN_PID")
	if pid != strconv.Itoa(os.Getpid()) { // the sockets were passed to another process
		return nil, nil
	}
	text, _ := lookup("LISTEN_FDS")
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		return nil, fmt.Errorf("LISTEN_FDS %q is not a number of sockets", text)
	}
	return passed(firstPassed, int(n))
}

// passed returns listeners for n descriptors from first on: all of them or none.
func passed(first, n int) (list []net.Listener, err error) {
	for fd := first; fd < first+n; fd++ {
		syscall.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "socket "+strconv.Itoa(fd))
		l, failure := net.FileListener(f) // this duplicates the descriptor; children do not inherit the duplicate either
		_ = f.Close()
		if failure != nil {
			err = errors.Join(err, fmt.Errorf("socket %d of the service manager: %w", fd, failure))
			continue
		}
		list = append(list, l)
	}
	if err != nil {
		for _, l := range list {
			_ = l.Close()
		}
		return nil, err
	}
	return list, nil
}
