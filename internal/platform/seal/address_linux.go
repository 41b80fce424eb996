//go:build amd64 || arm64

package seal

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const portDNS = 53

// familyOf returns the family of a struct sockaddr; AF_UNSPEC if it is too short for one, which connect refuses.
func familyOf(raw []byte) int {
	if len(raw) < 2 {
		return unix.AF_UNSPEC
	}
	return int(binary.NativeEndian.Uint16(raw))
}

// inetOf returns the address and port of a struct sockaddr_in or sockaddr_in6. It converts an IPv4 address within IPv6 to that IPv4
// address.
func inetOf(raw []byte) (addr netip.AddrPort, ok bool) {
	var bytes []byte
	switch family := familyOf(raw); {
	case family == unix.AF_INET && len(raw) >= 16:
		bytes = raw[4:8]
	case family == unix.AF_INET6 && len(raw) >= 24: // the kernel accepts the structure without the scope
		bytes = raw[8:24]
	default:
		return addr, false
	}
	ip, ok := netip.AddrFromSlice(bytes)
	return netip.AddrPortFrom(ip.Unmap(), binary.BigEndian.Uint16(raw[2:])), ok
}

// judgeTCP allows every address if Network is set. Otherwise it allows those of TCP and of sockets that listen inside.
func (c *call) judgeTCP(addr netip.AddrPort) error {
	switch {
	case c.rules.Network, slices.ContainsFunc(c.rules.TCP, func(a netip.AddrPort) bool {
		return a.Addr() == addr.Addr() && (a.Port() == 0 || a.Port() == addr.Port())
	}):
		return nil
	case !ownAddress(addr.Addr()):
		return errDenied
	}
	listening, err := listeningTCP(addr)
	if err != nil {
		return err
	}
	return c.network.inside(listening)
}

// ownAddress reports whether a connection to the address stays on this machine.
func ownAddress(ip netip.Addr) bool {
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == ip
	})
}

// judgeUDP allows DNS servers. For any other address it connects to port 0: the C library connects a socket only to learn which of its
// own addresses would be used, and data that is sent to port 0 reaches nobody.
func (c *call) judgeUDP(raw []byte, port uint16) (target, error) {
	if !c.rules.Network {
		return target{}, errDenied
	}
	if port != portDNS {
		raw[2], raw[3] = 0, 0
	}
	return target{raw: raw}, nil
}

// judgeUnix allows the sockets of the rules and those that listen inside, by whatever path the caller names them.
func (c *call) judgeUnix(raw []byte) (target, error) {
	name := raw[2:]
	if len(name) == 0 {
		return target{}, unix.EINVAL
	}
	if name[0] == 0 {
		return target{raw: raw}, c.judgeListeners(func(l unixListener) bool { return l.name == string(name) })
	}
	path, _, _ := bytes.Cut(name, []byte{0})
	held, err := c.openPath(string(path))
	if err != nil {
		return target{}, err
	}
	t := target{held: held, raw: unixAddress("/proc/self/fd/" + strconv.Itoa(int(held.Fd())))}
	if err := c.judgeFile(held); err != nil {
		t.close()
		return target{}, err
	}
	return t, nil
}

func unixAddress(path string) []byte {
	return append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), path+"\x00"...)
}

// openPath opens what the caller means by a path, with O_PATH only. The path may be changed to lead elsewhere; the descriptor cannot.
func (c *call) openPath(path string) (*os.File, error) {
	process := "/proc/" + strconv.Itoa(int(c.pid))
	switch rest, own := strings.CutPrefix(path, "/proc/self/"); {
	case own:
		path = process + "/" + rest
	case path[0] != '/':
		path = process + "/cwd/" + path
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	held := os.NewFile(uintptr(fd), path)
	if !c.valid() {
		_ = held.Close()
		return nil, unix.ENOENT
	}
	return held, nil
}

func (c *call) judgeFile(held *os.File) error {
	named, err := held.Stat()
	if err != nil {
		return err
	}
	for _, path := range c.rules.Sockets {
		if allowed, err := lstatResolved(path); err == nil && os.SameFile(named, allowed) {
			return nil
		}
	}
	file, err := inodeOf(held)
	if err != nil {
		return err
	}
	return c.judgeListeners(func(l unixListener) bool { return file.mayBe(l.file) })
}

func (c *call) judgeListeners(named func(unixListener) bool) error {
	listening, err := listeningUnix(named)
	if err != nil {
		return err
	}
	return c.network.inside(listening)
}

// lstatResolved returns the FileInfo of a path without following any link, because a directory of the rules may have been replaced by a
// link.
func lstatResolved(path string) (os.FileInfo, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer func() { _ = f.Close() }()
	return f.Stat()
}
