package process

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Listening returns the addresses at which a process accepts connections, sorted: paths of Unix sockets, @NAME for those without a file,
// HOST:PORT for TCP. Without /proc it finds none.
func Listening(pid int) []string {
	dir := fmt.Sprintf("/proc/%d", pid)
	entries, _ := os.ReadDir(dir + "/fd") // an error, as for a process that has ended, means that there are none
	var open []string
	for _, entry := range entries {
		if link, err := os.Readlink(filepath.Join(dir, "fd", entry.Name())); err == nil && strings.HasPrefix(link, "socket:[") {
			open = append(open, strings.Trim(link, "socket:[]"))
		}
	}
	var found []string
	for name, address := range map[string]func(fields []string) (inode, address string){"unix": unixListener, "tcp": tcpListener, "tcp6": tcpListener} {
		for line := range strings.Lines(content(dir + "/net/" + name)) {
			if inode, at := address(strings.Fields(line)); at != "" && slices.Contains(open, inode) {
				found = append(found, at)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// unixListener reads a line of /proc/net/unix: number, references, protocol, flags, type, state, inode, path.
func unixListener(fields []string) (inode, address string) {
	const acceptsConnections = 0x10000
	if len(fields) < 7 {
		return "", ""
	}
	if flags, err := strconv.ParseUint(fields[3], 16, 64); err != nil || flags&acceptsConnections == 0 {
		return "", ""
	}
	return fields[6], strings.Join(append(fields[7:], ""), "")
}

// tcpListener reads a line of /proc/net/tcp or tcp6: number, local address, remote address, state, seven more, of which the last but one
// is the inode.
func tcpListener(fields []string) (inode, address string) {
	const listens = "0A"
	if len(fields) < 10 || fields[3] != listens {
		return "", ""
	}
	host, port, _ := strings.Cut(fields[1], ":")
	raw, hostErr := hex.DecodeString(host)
	number, portErr := strconv.ParseUint(port, 16, 16)
	if hostErr != nil || portErr != nil || len(raw)%4 != 0 {
		return "", ""
	}
	for word := range slices.Chunk(raw, 4) { // the bytes of each word are in the byte order of the machine
		binary.BigEndian.PutUint32(word, binary.NativeEndian.Uint32(word))
	}
	return fields[9], net.JoinHostPort(net.IP(raw).String(), strconv.FormatUint(number, 10))
}
