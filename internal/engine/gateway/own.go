package gateway

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// own is a TCP listener of 127.0.0.1 that closes the connections of other users' processes at once, so that they take no place.
type own struct {
	net.Listener

	uid int // the user's
}

// Accept waits for the next connection of a process of the user's, of root's, or of one whose user is not known.
func (l own) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, known := userOf(conn); !known || uid == l.uid || uid == 0 {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// userOf returns the user id of the process at the other end of a connection from this machine, which Linux tells in /proc/net/tcp.
func userOf(conn net.Conn) (uid int, known bool) {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	here, hereErr := netip.ParseAddrPort(conn.LocalAddr().String())
	table, readErr := os.ReadFile("/proc/net/tcp")
	if err != nil || hereErr != nil || readErr != nil || !peer.Addr().Is4() || !here.Addr().Is4() {
		return 0, false
	}
	for line := range strings.Lines(string(table)) { // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid …
		fields := strings.Fields(line)
		if len(fields) > 7 && fields[1] == inTable(peer) && fields[2] == inTable(here) {
			uid, err = strconv.Atoi(fields[7])
			return uid, err == nil
		}
	}
	return 0, false
}

// inTable returns an address as the table has it: the bytes of the IP address in the order of a little-endian machine. On another one the
// user is not known.
func inTable(at netip.AddrPort) string {
	ip := at.Addr().As4()
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], at.Port())
}
