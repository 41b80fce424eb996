package forward

import (
	"net"
	"os"
	"syscall"
)

// sameUser reports whether the process that made a connection is this user's.
func sameUser(conn *net.UnixConn) (same bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		peer, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		same = err == nil && int(peer.Uid) == os.Getuid()
	})
	return same && err == nil
}
