//go:build amd64 || arm64

package seal

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// supervisor answers the calls that a filter passes to it. If the decision depends on memory of the caller, it copies the memory, checks
// the copy, and executes the call itself with the copy and a duplicate of the caller's socket, because the caller can change both
// meanwhile.
type supervisor struct {
	network  *network
	listener *os.File
	rules    Rules
}

const (
	errDenied  = unix.EACCES
	errRefused = unix.ECONNREFUSED
)

// request is the kernel's struct seccomp_notif. The rest leaves space for a longer struct, which the kernel fills as a whole.
type request struct {
	id    uint64
	pid   uint32 // id of the thread
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
	_     [128]byte
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// pollable makes a file of a listener, so that waiting for it takes no thread.
func pollable(fd int) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "seccomp"), nil
}

// serve answers calls until the last process under the filter has ended or the listener is closed.
func (s *supervisor) serve() {
	defer s.network.ended(s.listener)
	conn, err := s.listener.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool { // returns an error when the listener is closed
		for {
			ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if n, err := unix.Poll(ready, 0); n == 0 || err != nil {
				return err != nil && !errors.Is(err, unix.EINTR)
			}
			if ready[0].Revents&unix.POLLIN == 0 {
				return true // POLLHUP: no process is left
			}
			r := new(request)
			if ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(r)) == nil { // ENOENT: the caller has died
				s.dispatch(r)
			}
		}
	})
}

func ioctl(fd, request uintptr, data unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(data)); errno != 0 {
		return errno
	}
	return nil
}

// dispatch answers a call on a goroutine, so that a slow call does not delay others.
func (s *supervisor) dispatch(r *request) {
	c := &call{request: r, supervisor: s}
	select {
	case s.network.slots <- struct{}{}:
		go func() {
			defer func() { <-s.network.slots }()
			c.answer()
		}()
	default:
		c.reply(0, unix.EAGAIN)
	}
}

// call is a system call that waits for an answer.
type call struct {
	*request
	*supervisor
}

func (c *call) answer() {
	var value int
	var err error
	switch c.nr {
	case unix.SYS_CONNECT:
		err = c.connect()
	case unix.SYS_LISTEN:
		c.listen()
		c.proceed()
		return
	case unix.SYS_SENDTO:
		value, err = c.sendto()
	case unix.SYS_SENDMSG:
		value, err = c.sendmsg()
	case unix.SYS_SENDMMSG:
		value, err = c.sendmmsg()
	default:
		if c.concernsItself() {
			c.proceed()
			return
		}
		err = unix.EPERM
	}
	c.reply(value, err)
}

// listen records the socket. The call proceeds in any case: a socket that is not recorded is only unknown later.
func (c *call) listen() {
	fd, err := c.descriptor(int(int32(c.args[0])))
	if err != nil {
		return
	}
	defer closeAll([]int{fd})
	if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE); err == nil && c.valid() {
		c.network.remember(cookie)
	}
}

// concernsItself reports whether a call about priority, scheduling or limits is for a thread of the caller's process. Its arguments are
// numbers, which cannot change after the check, so the kernel may execute the call.
func (c *call) concernsItself() bool {
	thread := c.args[0]
	switch c.nr {
	case unix.SYS_PRLIMIT64:
		if c.args[2] == 0 {
			return true // the call only reads limits
		}
	case unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET:
		thread = c.args[1]
	}
	_, err := os.Stat(filepath.Join("/proc", strconv.Itoa(int(c.pid)), "task", strconv.Itoa(int(int32(thread)))))
	return err == nil && c.valid()
}

// valid reports whether the caller still waits. If so, what was read from it before was its own, because its thread id was not reused.
func (c *call) valid() bool {
	return c.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&c.id)) == nil
}

// reply ends the call with a result or an error.
func (c *call) reply(value int, err error) {
	r := response{id: c.id, value: int64(value)}
	if err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = unix.EIO
		}
		r.value, r.errno = 0, -int32(errno)
	}
	_ = c.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // ENOENT: the caller has died
}

// proceed lets the kernel execute the call.
func (c *call) proceed() {
	r := response{id: c.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	_ = c.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // ENOENT: the caller has died
}

func (c *call) control(op uintptr, data unsafe.Pointer) error {
	conn, err := c.listener.SyscallConn()
	if err != nil {
		return err
	}
	failed := conn.Control(func(fd uintptr) { err = ioctl(fd, op, data) })
	return errors.Join(failed, err)
}

// descriptor returns a duplicate of a descriptor of the caller.
func (c *call) descriptor(fd int) (int, error) {
	pidfd, err := unix.PidfdOpen(int(c.pid), unix.PIDFD_THREAD)
	if err != nil {
		return -1, err
	}
	defer closeAll([]int{pidfd})
	return unix.PidfdGetfd(pidfd, fd, 0)
}

// read copies memory of the caller.
func (c *call) read(into []byte, from uint64) error {
	return c.readPieces(into, []unix.RemoteIovec{{Base: uintptr(from), Len: len(into)}})
}

// readPieces fills a buffer from pieces of the caller's memory, at most mostPieces.
func (c *call) readPieces(into []byte, from []unix.RemoteIovec) error {
	if len(into) == 0 {
		return nil
	}
	n, err := unix.ProcessVMReadv(int(c.pid), []unix.Iovec{{Base: &into[0], Len: uint64(len(into))}}, from, 0)
	if err == nil && n != len(into) {
		return unix.EFAULT
	}
	return err
}

// write is the reverse of read.
func (c *call) write(to uint64, data []byte) error {
	local := []unix.Iovec{{Base: &data[0], Len: uint64(len(data))}}
	n, err := unix.ProcessVMWritev(int(c.pid), local, []unix.RemoteIovec{{Base: uintptr(to), Len: len(data)}}, 0)
	if err == nil && n != len(data) {
		return unix.EFAULT
	}
	return err
}
