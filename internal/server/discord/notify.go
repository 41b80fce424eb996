package discord

import (
	"net"
	"strings"
)

// Notifier returns a function that tells the service manager how the process is, by the protocol of sd_notify(3): one state per
// argument, such as READY=1. socket is the value of NOTIFY_SOCKET; with "" nobody is told. Nothing depends on its success.
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
