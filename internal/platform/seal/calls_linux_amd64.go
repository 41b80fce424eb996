package seal

import "golang.org/x/sys/unix"

// modeSecond returns the calls of this architecture whose second argument is a mode.
func modeSecond() []uint32 {
	return []uint32{unix.SYS_CHMOD, unix.SYS_MKDIR, unix.SYS_MKNOD, unix.SYS_CREAT}
}

// flagsSecond returns the calls whose second argument is the flags of open, and whose third argument is a mode.
func flagsSecond() []uint32 { return []uint32{unix.SYS_OPEN} }
