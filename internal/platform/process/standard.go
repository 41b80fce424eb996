package process

import (
	"os"
	"syscall"
)

// WasClosed reports whether a standard stream was closed when this program started. The Go runtime then opens /dev/null for reading and
// writing in its place, so that writing succeeds. A caller that passes /dev/null usually opens it for only one of the two.
func WasClosed(f *os.File) bool {
	info, err := f.Stat()
	null, nullErr := os.Stat(os.DevNull)
	if err != nil || nullErr != nil || !os.SameFile(info, null) {
		return false
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	mode := uintptr(0)
	err = conn.Control(func(fd uintptr) { mode, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0) })
	return err == nil && mode&syscall.O_ACCMODE == syscall.O_RDWR
}
