//go:build amd64 || arm64

package testkit

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// faultyThread runs functions one after another in a thread whose calls on files the kernel asks about.
type faultyThread struct {
	errno    syscall.Errno
	gone     bool // once a call has failed, all do
	listener int
	work     chan func()
	thread   int           // id of the thread
	ended    [2]int        // a pipe: eight bytes say that a function has returned
	done     chan struct{} // the same for the race detector
}

// faultyCalls are the system calls on files that a Fault lets fail: those that take a path as their second argument, behind the directory
// to which it is relative, and those that take an open file.
func faultyCalls() map[uint32]struct {
	name string
	path bool
} {
	type call = struct {
		name string
		path bool
	}
	return map[uint32]call{
		unix.SYS_OPENAT: {"open", true}, unix.SYS_NEWFSTATAT: {"stat", true}, unix.SYS_UNLINKAT: {"unlink", true},
		unix.SYS_MKDIRAT: {"mkdir", true}, unix.SYS_RENAMEAT: {"rename", true}, unix.SYS_RENAMEAT2: {"rename", true},
		unix.SYS_LINKAT: {"link", true}, unix.SYS_READLINKAT: {"readlink", true}, unix.SYS_FSTAT: {"fstat", false},
		unix.SYS_READ: {"read", false}, unix.SYS_PREAD64: {"pread", false}, unix.SYS_WRITE: {"write", false},
		unix.SYS_PWRITE64: {"pwrite", false}, unix.SYS_FSYNC: {"fsync", false}, unix.SYS_FTRUNCATE: {"truncate", false},
		unix.SYS_GETDENTS64: {"list", false}, unix.SYS_LSEEK: {"seek", false},
	}
}

func newFaultyThread(t testing.TB, errno syscall.Errno, gone bool) *faultyThread {
	t.Helper()
	f := &faultyThread{errno: errno, gone: gone, work: make(chan func()), done: make(chan struct{}, 1)}
	if err := unix.Pipe2(f.ended[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its filter
		var err error
		f.thread = unix.Gettid()
		f.listener, err = askAbout()
		started <- err
		for do := range f.work {
			do()
			f.done <- struct{}{}
			_, _ = unix.Write(f.ended[1], make([]byte, 8))
		}
	}()
	if err := <-started; err != nil {
		Missing(t, "no seccomp listener here: allow seccomp with SECCOMP_FILTER_FLAG_NEW_LISTENER (Linux 5.5): %v", err)
	}
	t.Cleanup(func() {
		for _, fd := range []int{f.listener, f.ended[0], f.ended[1]} {
			_ = unix.Close(fd)
		}
	})
	return f
}

// askAbout makes the kernel ask about the faulty calls of this thread, and returns the descriptor on which it asks. Reads and writes of eight
// bytes and of the standard streams are let through: the Go runtime wakes itself with those, and reports with these.
func askAbout() (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	const number, first, third = 0, 16, 32 // offsets in seccomp_data
	const load, ifEqual, ifGreater, end = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	program := []unix.SockFilter{
		{Code: load, K: number},
		{Code: ifEqual, Jt: 1, K: unix.SYS_READ},
		{Code: ifEqual, Jf: 5, K: unix.SYS_WRITE},
		{Code: load, K: third},
		{Code: ifEqual, Jt: 2, K: 8},
		{Code: load, K: first},
		{Code: ifGreater, Jt: 1, K: 2},
		{Code: end, K: unix.SECCOMP_RET_ALLOW},
		{Code: load, K: number},
	}
	var calls []uint32
	for call := range faultyCalls() {
		calls = append(calls, call)
	}
	for _, call := range calls {
		program = append(program,
			unix.SockFilter{Code: ifEqual, Jf: 1, K: call}, unix.SockFilter{Code: end, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	program = append(program, unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW})
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// with the second flag a signal does not interrupt a call that is asked about, since Linux 5.19
	const flags, waits = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, failed := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags|waits, uintptr(unsafe.Pointer(&prog)))
	if failed == unix.EINVAL {
		fd, _, failed = unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	}
	runtime.KeepAlive(program)
	if failed != 0 {
		return 0, failed
	}
	return int(fd), nil
}

// question and answer are struct seccomp_notif and seccomp_notif_resp of linux/seccomp.h.
type question struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

const (
	receive  = 0xc0502100 // SECCOMP_IOCTL_NOTIF_RECV
	send     = 0xc0182101 // SECCOMP_IOCTL_NOTIF_SEND
	goesOn   = 1          // SECCOMP_USER_NOTIF_FLAG_CONTINUE
	pathSize = 4096
	pageSize = 4096 // the smallest there is
)

// run calls do in the thread, lets the nth call on a file below dir fail, or it and all later ones, and returns the first. A call that a
// signal interrupts is made again, and asked about again.
func (f *faultyThread) run(dir string, nth int, do func()) (failed string) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	made, most := map[string]int{}, Full(math.MaxInt, 2)
	f.work <- do // from here on nothing may open a file with package os, nor read the environment: see opened
	for seen := 0; ; {
		q, asked := f.asked()
		if !asked {
			return failed
		}
		a, call := answer{id: q.id, flags: goesOn}, ""
		if int(q.pid) == f.thread {
			call = q.call(dir)
		}
		tried := call != "" && made[call] < most
		fails := tried && seen+1 == nth || call != "" && f.gone && failed != ""
		if fails {
			a.flags, a.errno = 0, -int32(f.errno)
		}
		if f.ioctl(send, unsafe.Pointer(&a)) == unix.ENOENT {
			continue
		}
		if made[call]++; tried {
			seen++
		}
		if fails && failed == "" {
			failed = call
		}
	}
}

// asked returns the next call about which the kernel asks. It reports whether there is one before the function returns.
func (f *faultyThread) asked() (q question, asked bool) {
	for {
		poll := []unix.PollFd{{Fd: int32(f.listener), Events: unix.POLLIN}, {Fd: int32(f.ended[0]), Events: unix.POLLIN}}
		_, err := unix.Poll(poll, -1)
		switch {
		case err != nil: // a signal
		case poll[0].Revents&unix.POLLIN != 0:
			switch err := f.ioctl(receive, unsafe.Pointer(&q)); err {
			case 0:
				return q, true
			case unix.EINTR, unix.ENOENT:
			default:
				panic(fmt.Sprintf("seccomp: %v", err))
			}
		case poll[1].Revents&unix.POLLIN != 0:
			_, _ = unix.Read(f.ended[0], make([]byte, 8))
			<-f.done
			return q, false
		default:
			panic("the function has ended its goroutine: it must return")
		}
	}
}

func (f *faultyThread) ioctl(request uintptr, value unsafe.Pointer) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(f.listener), request, uintptr(value))
	return errno
}

// call returns the call that the kernel asks about with the path of its file below dir; "" if it is another file, or no file.
func (q *question) call(dir string) string {
	call, ok := faultyCalls()[uint32(q.number)]
	if !ok {
		return ""
	}
	path := opened(int32(q.args[0]))
	if call.path {
		name := text(q.args[1])
		if !filepath.IsAbs(name) {
			name = filepath.Join(path, name)
		}
		path = name
	}
	below, ok := strings.CutPrefix(path+"/", dir+"/")
	if !ok {
		return ""
	}
	return call.name + " " + filepath.Clean(below)
}

// opened returns the path of an open file. Like text it does without package os: the thread may hold the lock of the log that go test
// keeps of opened files, while it waits for the answer.
func opened(fd int32) string {
	buf := make([]byte, pathSize)
	n, _ := unix.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd), buf) // none for AT_FDCWD
	return string(buf[:max(n, 0)])
}

// text returns the text at an address of this process, which need not be dumpable.
func text(address uint64) string {
	buf := make([]byte, pathSize)
	first := min(pathSize, pageSize-int(address%pageSize)) // the next page may not exist
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: first}, {Base: uintptr(address) + uintptr(first), Len: pathSize - first}}
	local := []unix.Iovec{{Base: &buf[0], Len: pathSize}}
	n, err := unix.ProcessVMReadv(unix.Getpid(), local, remote, 0)
	if err != nil {
		panic(err)
	}
	name, _, _ := bytes.Cut(buf[:n], []byte{0})
	return string(name)
}
