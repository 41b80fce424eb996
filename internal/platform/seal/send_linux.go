//go:build amd64 || arm64

package seal

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// The supervisor sends each message that may name a receiver, by a duplicate of the socket and with copies of all that the call points
// to. A stream has no receiver, but the kernel cannot be left to send on it either: the caller could put a datagram socket in its place.

const (
	longestDatagram = 1 << 16
	streamPiece     = 1 << 18
	mostPieces      = 1024 // UIO_MAXIOV
	longestPiece    = 1 << 31
	longestControl  = 1 << 14
	mostDescriptors = 253 // SCM_MAX_FD
	msghdrSize      = 56
	mmsghdrSize     = 64 // struct msghdr, the length that was sent, and four bytes of padding
)

// message is a message to be sent. Its data and its control data are still in the caller's memory.
type message struct {
	name    []byte
	pieces  []unix.RemoteIovec
	control []byte
	flags   int
}

// outlet is a socket to send on, with its properties that are the same for every message.
type outlet struct {
	fd       int
	domain   int
	stream   bool
	datagram bool
	waits    bool
}

func (c *call) outlet(flags int) (o outlet, err error) {
	if o.fd, err = c.descriptor(int(int32(c.args[0]))); err != nil {
		return o, err
	}
	kind, err := unix.GetsockoptInt(o.fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err == nil {
		o.domain, err = unix.GetsockoptInt(o.fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	}
	status, statusErr := unix.FcntlInt(uintptr(o.fd), unix.F_GETFL, 0)
	if err = errors.Join(err, statusErr); err == nil && !c.valid() {
		err = unix.ENOENT
	}
	if err != nil {
		closeAll([]int{o.fd})
		return o, err
	}
	o.stream, o.datagram = kind == unix.SOCK_STREAM, kind == unix.SOCK_DGRAM
	o.waits = status&unix.O_NONBLOCK == 0 && flags&unix.MSG_DONTWAIT == 0
	return o, nil
}

func (c *call) sendto() (int, error) {
	size := int32(c.args[5])
	if size < 0 || size > longestAddress {
		return 0, unix.EINVAL
	}
	m := message{name: make([]byte, size), flags: int(int32(c.args[3]))}
	m.pieces = []unix.RemoteIovec{{Base: uintptr(c.args[1]), Len: int(min(c.args[2], longestPiece))}}
	if err := c.read(m.name, c.args[4]); err != nil {
		return 0, err
	}
	o, err := c.outlet(m.flags)
	if err != nil {
		return 0, err
	}
	defer closeAll([]int{o.fd})
	return c.send(o, m)
}

func (c *call) sendmsg() (int, error) {
	flags := int(int32(c.args[2]))
	o, err := c.outlet(flags)
	if err != nil {
		return 0, err
	}
	defer closeAll([]int{o.fd})
	m, err := c.message(c.args[1], flags)
	if err != nil {
		return 0, err
	}
	return c.send(o, m)
}

func (c *call) sendmmsg() (sent int, err error) {
	flags := int(int32(c.args[3]))
	o, err := c.outlet(flags)
	if err != nil {
		return 0, err
	}
	defer closeAll([]int{o.fd})
	for ; sent < min(int(uint32(c.args[2])), mostPieces); sent++ {
		at := c.args[1] + uint64(sent*mmsghdrSize)
		var n int
		m, err := c.message(at, flags)
		if err == nil {
			n, err = c.send(o, m)
		}
		if err == nil {
			err = c.write(at+msghdrSize, binary.NativeEndian.AppendUint32(nil, uint32(n)))
		}
		if err != nil && sent == 0 {
			return 0, err
		}
		if err != nil {
			break
		}
	}
	return sent, nil
}

// message copies a struct msghdr and what it points to, except for the data.
func (c *call) message(at uint64, flags int) (m message, err error) {
	head := make([]byte, msghdrSize)
	if err := c.read(head, at); err != nil {
		return m, err
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(head[8*i:]) }
	m.flags = flags
	if word(0) != 0 {
		m.name = make([]byte, min(uint32(word(1)), longestAddress))
		if err := c.read(m.name, word(0)); err != nil {
			return m, err
		}
	}
	count, size := word(3), word(5)
	if count > mostPieces {
		return m, unix.EMSGSIZE
	}
	if size > longestControl {
		return m, unix.ENOBUFS
	}
	pieces := make([]byte, 16*count)
	m.control = make([]byte, size)
	if err := errors.Join(c.read(pieces, word(2)), c.read(m.control, word(4))); err != nil {
		return m, err
	}
	for ; len(pieces) > 0; pieces = pieces[16:] {
		length := binary.NativeEndian.Uint64(pieces[8:])
		if length > longestPiece {
			return m, unix.EINVAL
		}
		m.pieces = append(m.pieces, unix.RemoteIovec{Base: uintptr(binary.NativeEndian.Uint64(pieces)), Len: int(length)})
	}
	return m, nil
}

// send sends a whole message, or as much as a socket that does not block accepts.
func (c *call) send(o outlet, m message) (sent int, err error) {
	to, err := c.receiver(o, m.name)
	if err != nil {
		return 0, err
	}
	control, release, err := c.rights(o, m.control)
	if err != nil {
		return 0, err
	}
	defer release()
	most := longestDatagram
	if o.stream {
		most = streamPiece
	}
	w := c.newWait(o.fd, unix.SO_SNDTIMEO)
	for {
		data, rest, err := c.gather(m.pieces, most)
		if err == nil && len(rest) > 0 && !o.stream {
			err = unix.EMSGSIZE
		}
		var n int
		if err == nil {
			n, err = unix.SendmsgN(o.fd, data, control, to, m.flags|unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		}
		if errors.Is(err, unix.EAGAIN) && o.waits {
			if end := w.next(); end == nil {
				continue
			} else if !errors.Is(end, unix.EINPROGRESS) { // SO_SNDTIMEO has passed
				err = end
			}
		}
		if err != nil && sent > 0 {
			return sent, nil
		}
		if err != nil {
			return 0, err
		}
		sent, control = sent+n, nil
		if m.pieces = skip(m.pieces, n); len(m.pieces) == 0 || !o.stream {
			return sent, nil
		}
	}
}

// receiver returns the receiver that a message may name, which is a DNS server. A datagram of a unix socket goes to the other socket of
// its pair. A netlink message goes to the kernel and needs no name: with one, netlink would check the rights of this process instead of
// those of the socket's creator.
func (c *call) receiver(o outlet, name []byte) (unix.Sockaddr, error) {
	switch {
	case len(name) == 0:
		return nil, nil
	case o.domain == unix.AF_NETLINK:
		if len(name) < unix.SizeofSockaddrNetlink || binary.NativeEndian.Uint64(name[4:]) != 0 {
			return nil, errDenied // another process, or a group
		}
		return nil, nil
	case o.domain == unix.AF_UNIX && o.datagram:
		return nil, errDenied
	case o.stream || o.domain == unix.AF_UNIX:
		return nil, nil // the kernel ignores the name
	}
	addr, ok := inetOf(name)
	if !ok || !c.rules.Network || addr.Port() != portDNS {
		return nil, errDenied
	}
	if domain := familyOf(name); domain == unix.AF_INET {
		return &unix.SockaddrInet4{Port: portDNS, Addr: addr.Addr().As4()}, nil
	}
	to := &unix.SockaddrInet6{Port: portDNS}
	copy(to.Addr[:], name[8:24])
	if len(name) >= 28 {
		to.ZoneId = binary.NativeEndian.Uint32(name[24:])
	}
	return to, nil
}

// rights makes new control data in which descriptors of the caller are descriptors of this process. It omits the rest: names of processes
// and users would be checked against the rights of this process.
func (c *call) rights(o outlet, control []byte) (again []byte, release func(), err error) {
	var fds []int
	release = func() { closeAll(fds) }
	if o.domain != unix.AF_UNIX || len(control) == 0 {
		return nil, release, nil
	}
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, release, err
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_RIGHTS {
			continue
		}
		theirs, err := unix.ParseUnixRights(&m)
		if len(fds)+len(theirs) > mostDescriptors {
			err, theirs = unix.EINVAL, nil
		}
		for _, fd := range theirs {
			if fd, err = c.descriptor(fd); err != nil {
				break
			}
			fds = append(fds, fd)
		}
		if err != nil {
			release()
			return nil, func() {}, err
		}
	}
	if len(fds) == 0 {
		return nil, release, nil
	}
	return unix.UnixRights(fds...), release, nil
}

// gather copies at most most bytes of the data of the pieces, and returns the pieces that are left.
func (c *call) gather(pieces []unix.RemoteIovec, most int) (data []byte, rest []unix.RemoteIovec, err error) {
	size := 0
	for _, p := range pieces {
		size += p.Len
	}
	data = make([]byte, min(size, most))
	err = c.readPieces(data, pieces)
	return data, skip(pieces, len(data)), err
}

// skip returns the pieces without their first n bytes and without empty ones at the front.
func skip(pieces []unix.RemoteIovec, n int) []unix.RemoteIovec {
	for len(pieces) > 0 && n >= pieces[0].Len {
		n -= pieces[0].Len
		pieces = pieces[1:]
	}
	if n > 0 {
		first := pieces[0]
		pieces = append([]unix.RemoteIovec{{Base: first.Base + uintptr(n), Len: first.Len - n}}, pieces[1:]...)
	}
	return pieces
}
