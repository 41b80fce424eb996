//go:build amd64 || arm64

package seal

import (
	"errors"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// longestAddress is the size of struct sockaddr_storage.
const longestAddress = 128

// connect checks a copy of the address and connects a duplicate of the caller's socket to it.
func (c *call) connect() error {
	size := int32(c.args[2])
	if size < 0 || size > longestAddress {
		return unix.EINVAL
	}
	raw := make([]byte, size)
	if err := c.read(raw, c.args[1]); err != nil {
		return err
	}
	fd, err := c.descriptor(int(int32(c.args[0])))
	if err != nil {
		return err
	}
	defer closeAll([]int{fd})
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return err
	}
	if !c.valid() {
		return unix.ENOENT
	}
	to, err := c.judge(raw, kind)
	if err != nil {
		return err
	}
	defer to.close()
	return c.connectTo(fd, to.raw)
}

// judge returns the address to connect a socket of this kind to, or an error that denies the connection.
func (c *call) judge(raw []byte, kind int) (target, error) {
	switch family := familyOf(raw); family {
	case unix.AF_UNSPEC: // disconnects
		return target{raw: raw}, nil
	case unix.AF_UNIX:
		return c.judgeUnix(raw)
	case unix.AF_INET, unix.AF_INET6:
		addr, ok := inetOf(raw)
		if !ok {
			return target{}, unix.EINVAL
		}
		if kind != unix.SOCK_DGRAM {
			return target{raw: raw}, c.judgeTCP(addr)
		}
		return c.judgeUDP(raw, addr.Port())
	default:
		return target{}, unix.EAFNOSUPPORT
	}
}

// target is an address that a socket may be connected to. It keeps the file that the address names open.
type target struct {
	raw  []byte
	held *os.File
}

func (t target) close() {
	if t.held != nil {
		_ = t.held.Close() // opened with O_PATH
	}
}

// connectTo connects without ever waiting in the kernel: this process can serve many callers only if none of them blocks a thread. It
// waits in intervals for a caller whose socket blocks.
func (c *call) connectTo(fd int, raw []byte) error {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	local := familyOf(raw) == unix.AF_UNIX
	blocks := flags&unix.O_NONBLOCK == 0
	err = connectNow(fd, raw, flags)
	if !blocks {
		return err
	}
	w := c.newWait(fd, unix.SO_SNDTIMEO)
	for waitsForPeer(err, local) {
		if local || !writable(fd) { // a connection within this machine is ready at once
			if end := w.next(); end != nil {
				return end
			}
		}
		if local || writable(fd) {
			err = connectNow(fd, raw, flags)
		}
	}
	return err
}

// waitsForPeer reports whether a connect is under way, or has to be repeated because the queue of a unix listener is full.
func waitsForPeer(err error, local bool) bool {
	if local {
		return errors.Is(err, unix.EAGAIN)
	}
	return errors.Is(err, unix.EINPROGRESS) || errors.Is(err, unix.EALREADY)
}

// connectNow connects without blocking. It sets O_NONBLOCK on the open file that it shares with the caller, and restores the flag at
// once.
func connectNow(fd int, raw []byte, flags int) error {
	if flags&unix.O_NONBLOCK == 0 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags|unix.O_NONBLOCK); err != nil {
			return err
		}
		defer func() { _, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags) }()
	}
	var at unsafe.Pointer
	if len(raw) > 0 {
		at = unsafe.Pointer(&raw[0])
	}
	if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(at), uintptr(len(raw))); errno != 0 {
		return errno
	}
	return nil
}

func writable(fd int) bool {
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(ready, 0)
	return n > 0 && err == nil
}

// wait paces the repeated attempts of a call that blocks. The pauses grow with the elapsed time, so that they add at most an eighth to
// it.
type wait struct {
	call   *call
	passed time.Duration
	limit  time.Duration // 0: none
}

const (
	shortestPause = 100 * time.Microsecond
	longestPause  = 50 * time.Millisecond
)

// newWait reads the limit of the socket: SO_SNDTIMEO or SO_RCVTIMEO.
func (c *call) newWait(fd, option int) *wait {
	w := &wait{call: c}
	if limit, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, option); err == nil {
		w.limit = time.Duration(limit.Nano())
	}
	return w
}

// next pauses. It returns the error that ends the call: the time limit has passed, the caller has ended, or it has a signal to handle.
func (w *wait) next() error {
	pause := min(max(w.passed/8, shortestPause), longestPause)
	time.Sleep(pause)
	w.passed += pause
	switch {
	case w.limit > 0 && w.passed >= w.limit:
		return unix.EINPROGRESS
	case pause < longestPause/8:
		return nil // early pauses are short enough for a signal to wait
	case !w.call.valid():
		return unix.ENOENT
	default:
		return w.call.interrupted()
	}
}

// restart is ERESTARTSYS. With it the kernel restarts the call or ends it with EINTR, as the handler of the signal requires. A program
// never sees it, provided that a signal is pending for the thread.
const restart = unix.Errno(512)

// interrupted returns an error if the caller has a signal to handle. The kernel delivers it only after the answer.
func (c *call) interrupted() error {
	fields, err := fieldsOf("/proc/" + strconv.Itoa(int(c.pid)) + "/status")
	if err != nil {
		return unix.ENOENT
	}
	signals := func(name string) uint64 {
		set, _ := strconv.ParseUint(fields[name], 16, 64) // the kernel writes valid hexadecimal numbers
		return set
	}
	heeded := ^(signals("SigBlk") | signals("SigIgn"))
	switch {
	case signals("SigPnd")&heeded != 0, signals("ShdPnd")&heeded != 0 && fields["Threads"] == "1":
		return restart
	case signals("ShdPnd")&heeded != 0:
		return unix.EINTR // another thread of the process may take the signal
	default:
		return nil
	}
}
