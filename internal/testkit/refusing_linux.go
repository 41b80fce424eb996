package testkit

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// StartRefusing starts cmd as on a kernel where system calls, given by number, fail with an error; 0 lets them succeed without
// effect. The caller calls cmd.Wait. The program cannot gain privileges by execve.
func StartRefusing(t testing.TB, cmd *exec.Cmd, errno syscall.Errno, calls ...uint32) {
	t.Helper()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its filter
		err := refuse(errno, calls)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
}

// refuse makes calls fail for the calling thread, and for what it starts.
func refuse(errno syscall.Errno, calls []uint32) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the number
	for _, call := range calls {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: call},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)})
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, failed := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if failed != 0 {
		return failed
	}
	return nil
}
