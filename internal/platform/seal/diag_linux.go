//go:build amd64 || arm64

package seal

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The kernel says through NETLINK_SOCK_DIAG which sockets listen. It numbers sockets by cookies, which it never reuses.

const (
	stateListen      = 10
	unixDiagShowName = 1
	unixDiagShowFile = 2
	unixDiagName     = 0
	unixDiagFile     = 1
)

// listeningTCP returns the cookies of the sockets that may accept a connection to an address of this machine.
func listeningTCP(addr netip.AddrPort) ([]uint64, error) {
	families := []byte{unix.AF_INET6}
	if addr.Addr().Is4() {
		families = append(families, unix.AF_INET)
	}
	var found []uint64
	for _, family := range families {
		ask := make([]byte, 56) // struct inet_diag_req_v2
		ask[0], ask[1] = family, unix.IPPROTO_TCP
		binary.NativeEndian.PutUint32(ask[4:], 1<<stateListen)
		binary.BigEndian.PutUint16(ask[8:], addr.Port())
		err := diagnose(ask, func(msg []byte) { // struct inet_diag_msg
			if len(msg) < 56 {
				return
			}
			bound, _ := netip.AddrFromSlice(msg[8:24])
			if family == unix.AF_INET {
				bound, _ = netip.AddrFromSlice(msg[8:12])
			}
			if bound = bound.Unmap(); bound.IsUnspecified() || addr.Addr().IsUnspecified() || bound == addr.Addr() {
				found = append(found, binary.NativeEndian.Uint64(msg[44:]))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// inode identifies a file as the kernel does internally. On some file systems stat reports another device.
type inode struct {
	number uint32 // lower half of the inode number, as in struct unix_diag_vfs
	device uint32 // 0 if unknown
}

// mayBe reports whether a file may be the one that a listener is bound to. If the device is unknown, listeners on every device match.
// That never allows more, because the run must own all matching listeners.
func (i inode) mayBe(bound inode) bool {
	return i.number == bound.number && (i.device == 0 || i.device == bound.device)
}

// inodeOf returns the inode of an open file, by its number and by the mount that it was found through.
func inodeOf(f *os.File) (inode, error) {
	fields, err := fieldsOf("/proc/self/fdinfo/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return inode{}, err
	}
	number, err := strconv.ParseUint(fields["ino"], 10, 64)
	if err != nil {
		return inode{}, err
	}
	device, err := deviceOf(fields["mnt_id"])
	return inode{number: uint32(number), device: device}, err
}

// fieldsOf parses a file of lines "name: value".
func fieldsOf(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields, err
}

// deviceOf returns the device of a mount. It returns 0 if this process does not see the mount: in a chroot whose directory is not a mount
// point, that is the mount that holds the directory.
func deviceOf(mount string) (uint32, error) {
	mounts, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line) // format: ID, parent, major:minor, …
		if len(fields) < 3 || fields[0] != mount {
			continue
		}
		var major, minor uint32
		if _, err := fmt.Sscanf(fields[2], "%d:%d", &major, &minor); err != nil {
			return 0, err
		}
		return major<<20 | minor, nil
	}
	return 0, nil
}

type unixListener struct {
	name string // "" for a socket without a name; an abstract name begins with NUL
	file inode
}

// listeningUnix returns the cookies of the listening unix sockets for which wanted returns true.
func listeningUnix(wanted func(unixListener) bool) (cookies []uint64, err error) {
	ask := make([]byte, 24) // struct unix_diag_req
	ask[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(ask[4:], 1<<stateListen)
	binary.NativeEndian.PutUint32(ask[12:], unixDiagShowName|unixDiagShowFile)
	err = diagnose(ask, func(msg []byte) { // struct unix_diag_msg, then attributes
		if len(msg) < 16 {
			return
		}
		var socket unixListener
		for rest := msg[16:]; len(rest) >= 4; {
			size, kind := int(binary.NativeEndian.Uint16(rest)), binary.NativeEndian.Uint16(rest[2:])
			if size < 4 || size > len(rest) {
				break
			}
			switch value := rest[4:size]; {
			case kind == unixDiagName:
				socket.name = string(value)
			case kind == unixDiagFile && len(value) >= 8:
				socket.file = inode{number: binary.NativeEndian.Uint32(value), device: binary.NativeEndian.Uint32(value[4:])}
			}
			rest = rest[min((size+3)&^3, len(rest)):]
		}
		if wanted(socket) {
			cookies = append(cookies, binary.NativeEndian.Uint64(msg[8:]))
		}
	})
	return cookies, err
}

// diagnose sends a request for a list, and calls each with the payload of every answer.
func diagnose(ask []byte, each func([]byte)) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer closeAll([]int{fd})
	head := make([]byte, unix.NLMSG_HDRLEN)
	binary.NativeEndian.PutUint32(head, uint32(len(head)+len(ask)))
	binary.NativeEndian.PutUint16(head[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(head[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if err := unix.Sendto(fd, append(head, ask...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("sendto", err)
	}
	buffer := make([]byte, 8<<10) // the kernel fills at most this many bytes at a time
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return os.NewSyscallError("recvfrom", err)
		}
		messages, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return err
		}
		for _, m := range messages {
			switch {
			case m.Header.Type == unix.NLMSG_DONE:
				return nil
			case m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4:
				return fmt.Errorf("list of sockets: %w", syscall.Errno(-int32(binary.NativeEndian.Uint32(m.Data))))
			case m.Header.Type == unix.SOCK_DIAG_BY_FAMILY:
				each(m.Data)
			}
		}
	}
}
