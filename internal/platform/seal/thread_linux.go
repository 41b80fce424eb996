//go:build amd64 || arm64

package seal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

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

// thread is a sealed thread, which starts one program after the other.
type thread struct {
	rules Rules
	files []file // what each path of the rules led to when the thread was sealed
	work  chan work

	processes *os.File // of /proc
	null      *os.File
	keeper    *keeper
}

// work is a program to start.
type work struct {
	cmd     *exec.Cmd
	canary  canary
	started chan error
}

// give lets a sealed thread start a program: the idle one if it has the same rules, of the same files, else a new one.
func (r *run) give(w work, rules Rules) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return ErrClosed
	}
	idle := r.idle
	r.idle = nil
	if idle == nil {
		r.threads.Add(1)
	}
	r.mu.Unlock()
	if idle != nil {
		if reflect.DeepEqual(idle.rules, rules) && slices.Equal(idle.files, filesOf(rules)) {
			idle.work <- w
			return nil
		}
		r.threads.Add(1) // while idle counts
		close(idle.work)
	}
	r.spawn(w, rules)
	return nil
}

// spawn lets a new thread, which is counted already, start a program.
func (r *run) spawn(w work, rules Rules) {
	onThread(func() {
		defer r.threads.Done()
		r.serve(&thread{rules: rules, work: make(chan work)}, w)
	})
}

// serve seals the calling thread, starts one program after the other, and returns when the run has ended or another thread is idle.
func (r *run) serve(t *thread, w work) {
	var err error
	if t.processes, err = os.Open("/proc"); err != nil { // while the thread may
		w.started <- err
		return
	}
	defer func() { _ = t.processes.Close() }()
	if t.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		w.started <- err
		return
	}
	defer func() { _ = t.null.Close() }()
	defer func() { t.keeper.end() }()
	if err := r.restrict(t); err != nil {
		w.started <- fmt.Errorf("%w: %w", ErrNotSealed, err)
		return
	}
	for open := true; open; w, open = <-t.work {
		if !r.start(t, w) {
			return
		}
	}
}

// offer lets the next start take the thread. A start that has taken it gives it a program or ends it.
func (r *run) offer(t *thread) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.idle != nil {
		return false
	}
	r.idle = t
	return true
}

// withdraw takes an offer back. If a start has taken it already, another thread starts the program.
func (r *run) withdraw(t *thread) {
	r.mu.Lock()
	taken := r.idle != t
	if !taken {
		r.idle = nil
	}
	r.mu.Unlock()
	if !taken {
		return
	}
	if w, open := <-t.work; open {
		r.threads.Add(1)
		r.spawn(w, t.rules)
	}
}

// start starts a program on the calling thread, which is sealed, and returns when nothing of it is left, or when the run has
// ended. It reports whether the thread may start another one.
func (r *run) start(t *thread, w work) (again bool) {
	if err := w.canary.try(); err != nil {
		w.started <- fmt.Errorf("%w: %w", ErrNotSealed, err)
		return false
	}
	if err := t.keeper.arm(); err != nil {
		w.started <- fmt.Errorf("%w: %w", ErrNotSealed, err)
		return false
	}
	complete(w.cmd, t.null)
	if err := w.cmd.Start(); err != nil {
		w.started <- err
		return r.offer(t)
	}
	leader, err := unix.PidfdOpen(w.cmd.Process.Pid, 0)
	if err != nil { // no descriptor is free
		_ = unix.Kill(w.cmd.Process.Pid, unix.SIGKILL) // Process.Kill may send by pidfd, which the filter refuses
		_ = w.cmd.Wait()
		w.started <- os.NewSyscallError("pidfd_open", err)
		return false
	}
	defer func() { _ = unix.Close(leader) }()
	w.started <- nil
	poll(-1, leader, r.ended[0])
	return r.attend(t)
}

// restrict seals the calling thread.
func (r *run) restrict(t *thread) error {
	set, files, err := ruleset(t.rules)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(set) }()
	t.files = files
	if err := dropPrivileges(); err != nil {
		return err
	}
	if t.keeper, err = keep(t.null); err != nil {
		return err
	}
	if err := restrictSelf(set); err != nil {
		return err
	}
	serve, err := r.network.restrict(t.rules)
	if err != nil {
		return err
	}
	go serve()
	return nil
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
// without leaving one behind, else at the end of the run, when it kills them. It reports whether the thread is offered for another
// start, which may have taken it already.
//
// kill(-1) reaches exactly the other processes of the domain, because the domain confines signals and the trial has shown it. The
// kernel signals them in one step, so that none escapes by forking. It also ends one that forked past the list and has not exited.
func (r *run) attend(t *thread) (offered bool) {
	offered = r.offer(t)
	left, err := descendants(t.processes)
	if err == nil && len(left) == 0 {
		// Numbers begin again at the lowest: a process that has exited may have left a child below those that were read already.
		left, err = descendants(t.processes)
	}
	closeAll(left) // a program may leave thousands behind
	if err == nil && len(left) == 0 {
		_ = unix.Kill(-1, unix.SIGKILL)
		return offered
	}
	if offered {
		r.withdraw(t)
	}
	poll(-1, r.ended[0])
	_ = unix.Kill(-1, unix.SIGKILL)
	left, _ = descendants(t.processes)
	defer closeAll(left)
	within := patience
	for _, fd := range left {
		if !poll(within, fd) {
			r.stuck.Add(1)
			within = 0
		}
	}
	return false
}

// descendants returns a pidfd of each process in the domain of the calling thread that has not ended. The caller closes them. An
// error tells that there may be more.
func descendants(processes *os.File) (alive []int, failed error) {
	fd, own := int(processes.Fd()), unix.Getpid()
	if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
		return nil, err
	}
	entries := make([]byte, 16<<10)
	for {
		n, err := unix.Getdents(fd, entries)
		if n <= 0 || err != nil {
			return alive, errors.Join(failed, err)
		}
		for at := 0; at < n; {
			entry := entries[at:]
			length := int(binary.NativeEndian.Uint16(entry[unsafe.Offsetof(unix.Dirent{}.Reclen):]))
			at += length
			name, _, _ := bytes.Cut(entry[unsafe.Offsetof(unix.Dirent{}.Name):length], []byte{0})
			pid, err := strconv.Atoi(string(name))
			if err != nil || pid == own || unix.Kill(pid, 0) != nil {
				continue
			}
			process, err := unix.PidfdOpen(pid, 0)
			switch {
			case errors.Is(err, unix.ESRCH):
			case err != nil:
				failed = err
			case poll(0, process): // a zombie
				_ = unix.Close(process)
			default:
				alive = append(alive, process)
			}
		}
	}
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
