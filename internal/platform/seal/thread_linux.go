//go:build amd64 || arm64

package seal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// patience is the time in milliseconds for a killed process to end.
const patience = 2000

// onThread runs f on a thread of its own, which ends with f. It is never the main thread: /proc/PID shows that one, and it would
// not end but stay sealed.
func onThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return // locked, so that the thread ends
		}
		next := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(next)
			f()
		}()
		<-next
		runtime.UnlockOSThread()
	}()
}

// start seals the calling thread, starts the program, and returns when nothing of it is left, or when the run has ended.
func (r *run) start(cmd *exec.Cmd, rules Rules, started chan<- error) {
	processes, err := os.Open("/proc") // while the thread may
	if err != nil {
		started <- err
		return
	}
	defer func() { _ = processes.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		started <- err
		return
	}
	defer func() { _ = null.Close() }()
	if err := r.restrict(rules); err != nil {
		started <- fmt.Errorf("%w: %w", ErrNotSealed, err)
		return
	}
	complete(cmd, null)
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	leader, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil { // no descriptor is free
		_ = unix.Kill(cmd.Process.Pid, unix.SIGKILL) // Process.Kill may send by pidfd, which the filter refuses
		_ = cmd.Wait()
		started <- os.NewSyscallError("pidfd_open", err)
		return
	}
	defer func() { _ = unix.Close(leader) }()
	started <- nil
	r.attend(leader, processes)
}

// restrict seals the calling thread, and tries the seal.
func (r *run) restrict(rules Rules) error {
	canary, err := newCanary(rules.Canary)
	if err != nil {
		return err
	}
	set, err := ruleset(rules)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(set) }()
	if err := dropPrivileges(); err != nil {
		return err
	}
	if err := restrictSelf(set); err != nil {
		return err
	}
	serve, err := r.network.restrict(rules)
	if err != nil {
		return err
	}
	go serve()
	return canary.try()
}

// complete gives the program what it would otherwise get from files that are closed to the thread, and ties it to the thread.
func complete(cmd *exec.Cmd, null *os.File) {
	if cmd.Stdin == nil {
		cmd.Stdin = null
	}
	if cmd.Stdout == nil {
		cmd.Stdout = null
	}
	if cmd.Stderr == nil {
		cmd.Stderr = null
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// attend returns when no process is left in the domain of the calling thread, which is sealed: when the program has ended
// without leaving one behind, else at the end of the run, when it kills them.
//
// kill(-1) reaches exactly the other processes of the domain, because the domain confines signals and the trial has shown it. The
// kernel signals them in one step, so that none escapes by forking.
func (r *run) attend(leader int, processes *os.File) {
	poll(-1, leader, r.ended[0])
	left := descendants(processes)
	if len(left) > 0 {
		poll(-1, r.ended[0])
		closeAll(left)
	}
	_ = unix.Kill(-1, unix.SIGKILL)
	left = descendants(processes)
	defer closeAll(left)
	within := patience
	for _, fd := range left {
		if !poll(within, fd) {
			r.stuck.Add(1)
			within = 0
		}
	}
}

// descendants returns a pidfd of each process in the domain of the calling thread that has not ended. The caller closes them.
func descendants(processes *os.File) (alive []int) {
	if _, err := processes.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	names, err := processes.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == unix.Getpid() || unix.Kill(pid, 0) != nil {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if poll(0, fd) { // a zombie
			_ = unix.Close(fd)
			continue
		}
		alive = append(alive, fd)
	}
	return alive
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// poll waits until one of fds is ready, at most as many milliseconds (-1: any time), and reports whether one is.
func poll(within int, fds ...int) bool {
	list := make([]unix.PollFd, len(fds))
	for i, fd := range fds {
		list[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	for {
		n, err := unix.Poll(list, within)
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}
