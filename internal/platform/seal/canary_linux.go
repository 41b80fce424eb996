//go:build amd64 || arm64

package seal

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// canary is a file that this process can open, and a sealed process must not.
type canary struct {
	path string
	name *byte
}

// newCanary returns an error if this process cannot open the file: then the trial would prove nothing.
func newCanary(path string) (canary, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return canary{}, fmt.Errorf("canary %s: %w", path, err)
	}
	_ = unix.Close(fd)
	name, err := unix.BytePtrFromString(path)
	return canary{path, name}, err
}

// Exit statuses of the trial.
const (
	holds = iota
	opened
	failed
	signalled
)

// try starts a process in the way in which the calling thread starts programs, but executes no program. It returns nil if that process
// could neither open the canary nor send a signal to this one.
func (c canary) try() error {
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return os.NewSyscallError("sigprocmask", err)
	}
	pid, errno := tryInChild(c.name) // block signals: a signal handler of this process must not run in the child
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil); err != nil {
		return os.NewSyscallError("sigprocmask", err)
	}
	if errno != 0 {
		return os.NewSyscallError("clone", errno)
	}
	var status unix.WaitStatus
	_, err := unix.Wait4(pid, &status, 0, nil)
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Wait4(pid, &status, 0, nil)
	}
	if err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	switch {
	case status.Exited() && status.ExitStatus() == holds:
		return nil
	case status.Exited() && status.ExitStatus() == opened:
		return fmt.Errorf("a sealed program could open %s", c.path)
	case status.Exited() && status.ExitStatus() == signalled:
		return errors.New("a sealed program could signal other processes")
	}
	return fmt.Errorf("the trial with %s failed (status %#x)", c.path, status)
}

// vfork makes a process as the syscall package does for exec.Cmd. The child shares the memory of this process, and the calling thread
// stops until the child has ended. The result is that of clone, returned once in each process.
func vfork(flags uintptr) (result uintptr)

// tryInChild returns the process that tries the seal, which has ended. That process must not call anything that needs the
// runtime, and this one must return at once, because they share the stack.
//
//go:norace
//go:nosplit
//go:noinline
func tryInChild(name *byte) (pid int, errno unix.Errno) {
	result := int(vfork(unix.CLONE_VM | unix.CLONE_VFORK | uintptr(unix.SIGCHLD)))
	if result < 0 {
		return 0, unix.Errno(-result)
	}
	if result > 0 {
		return result, 0
	}
	status := uintptr(failed)
	at := unix.AT_FDCWD
	_, _, errno = unix.RawSyscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(name)), unix.O_RDONLY, 0, 0, 0)
	if errno == 0 {
		status = opened
	}
	if errno == unix.EACCES {
		status = holds
		parent, _, _ := unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
		if _, _, errno = unix.RawSyscall(unix.SYS_KILL, parent, 0, 0); errno != unix.EPERM {
			status = signalled
		}
	}
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, status, 0, 0)
	}
}
