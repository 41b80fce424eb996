//go:build amd64 || arm64

package seal

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The seccomp filter of a sealed thread decides by the number of a system call and by arguments that are numbers. Arguments in memory,
// above all addresses, are left to the supervisor (notify_linux.go). Both supported architectures are little-endian.
//
// The kernel caches the calls that the filter always allows (since Linux 5.11), so that a longer filter does not make read or getpid
// slower.

// refused returns the calls that always fail, by the error that the program gets.
func refused() map[string][]uint32 {
	return map[string][]uint32{
		"ENOSYS": {
			unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, // connects without connect
			unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
			unix.SYS_CLONE3,  // its flags are in memory; the C library falls back to clone, as it does in containers
			unix.SYS_OPENAT2, // the mode of a new file is in memory
			unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
			// accepts a directory of /proc as a process, even that of one of this process's threads
			unix.SYS_PIDFD_SEND_SIGNAL,
			unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, // Landlock does not cover System V IPC
			unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_SHMCTL, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN,
			unix.SYS_MQ_UNLINK,
		},
		"EPERM": {
			unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
			unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
			unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
			unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
			unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
			unix.SYS_OPEN_BY_HANDLE_AT,
		},
	}
}

const (
	newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
	socketType   = 0xf        // the rest of the argument is SOCK_NONBLOCK and SOCK_CLOEXEC
	firstX32     = 0x40000000 // calls of the x32 ABI, by the same architecture
	prioProcess  = 0
	ioprioWhoPid = 1
	tmpfile      = unix.O_TMPFILE &^ unix.O_DIRECTORY
	fioSetOwn    = 0x8901 // F_SETOWN of sockets, whose argument is a pointer
	siocSetPgrp  = 0x8902
)

// filter returns the program. With datagrams it also allows sockets for DNS, whose messages the supervisor sends.
func filter(datagrams bool) ([]unix.SockFilter, error) {
	a := assembler{jumps: map[int][2]string{}, labels: map[string]int{}}
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	a.load(4)
	a.jump(unix.BPF_JEQ, arch, "", "ENOSYS")
	a.load(0)
	a.jump(unix.BPF_JGE, firstX32, "ENOSYS", "")
	for _, nr := range []uint32{unix.SYS_CONNECT, unix.SYS_LISTEN} {
		a.jump(unix.BPF_JEQ, nr, "notify", "")
	}
	checks := argumentChecks(datagrams)
	for i, check := range checks {
		for _, nr := range check.calls {
			a.jump(unix.BPF_JEQ, nr, fmt.Sprint(i), "")
		}
	}
	for errno, calls := range refused() {
		for _, nr := range calls {
			a.jump(unix.BPF_JEQ, nr, errno, "")
		}
	}
	a.jump(unix.BPF_JA, 0, "allow", "")
	for i, check := range checks {
		a.label(fmt.Sprint(i))
		check.emit(&a)
	}
	a.end("allow", unix.SECCOMP_RET_ALLOW)
	a.end("notify", unix.SECCOMP_RET_USER_NOTIF)
	for name, errno := range map[string]unix.Errno{
		"ENOSYS": unix.ENOSYS, "EPERM": unix.EPERM, "EACCES": unix.EACCES,
		"EAFNOSUPPORT": unix.EAFNOSUPPORT, "EPROTONOSUPPORT": unix.EPROTONOSUPPORT, "EOPNOTSUPP": unix.EOPNOTSUPP,
	} {
		a.end(name, unix.SECCOMP_RET_ERRNO|uint32(errno))
	}
	return a.program()
}

// argumentCheck is code that ends with a jump to a verdict.
type argumentCheck struct {
	calls []uint32
	emit  func(*assembler)
}

func argumentChecks(datagrams bool) []argumentCheck {
	refuseFlags := func(arg int, flags uint32) func(*assembler) {
		return byArg(arg, unix.BPF_JSET, flags, "EPERM", "allow")
	}
	refuseValue := func(arg int, value uint32) func(*assembler) { return byArg(arg, unix.BPF_JEQ, value, "EPERM", "allow") }
	// 0 means the caller; the supervisor decides whether another number is one of the caller's threads
	ownThread := func(arg int) func(*assembler) { return byArg(arg, unix.BPF_JEQ, 0, "allow", "notify") }
	kindThenThread := func(kind uint32) func(*assembler) {
		return func(a *assembler) {
			byArg(0, unix.BPF_JEQ, kind, "", "EPERM")(a)
			ownThread(1)(a)
		}
	}
	self := uint32(unix.Gettid())
	return append(modeChecks(), []argumentCheck{
		// The thread that installs the filter is in the sealed domain, so Landlock lets its descendants signal it, and a fatal signal to
		// a thread ends its whole process. F_SETOWN_EX can be refused: only ptrace and perf use it for signals of another thread.
		{[]uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_PIDFD_OPEN}, refuseValue(0, self)},
		{[]uint32{unix.SYS_TGKILL, unix.SYS_RT_TGSIGQUEUEINFO}, refuseValue(1, self)},
		{[]uint32{unix.SYS_FCNTL}, func(a *assembler) {
			byArg(1, unix.BPF_JEQ, unix.F_SETOWN_EX, "EPERM", "")(a)
			a.jump(unix.BPF_JEQ, unix.F_SETOWN, "", "allow")
			refuseValue(2, self)(a)
		}},
		{[]uint32{unix.SYS_SOCKETPAIR}, func(a *assembler) { // the sender of a datagram may name a receiver other than its pair
			byArg(0, unix.BPF_JEQ, unix.AF_UNIX, "", "EAFNOSUPPORT")(a)
			a.arg(1)
			a.and(socketType)
			a.jump(unix.BPF_JEQ, unix.SOCK_DGRAM, "allow", "unix")
		}},
		{[]uint32{unix.SYS_SOCKET}, func(a *assembler) { checkSocket(a, datagrams) }},
		{[]uint32{unix.SYS_SENDTO}, checkSendto},
		{[]uint32{unix.SYS_SENDMSG}, sendmsg(2)},
		{[]uint32{unix.SYS_SENDMMSG}, sendmsg(3)},
		{[]uint32{unix.SYS_CLONE}, refuseFlags(0, newNamespaces)},
		{[]uint32{unix.SYS_UNSHARE}, refuseFlags(0, newNamespaces|unix.CLONE_NEWTIME)},
		{[]uint32{unix.SYS_IOCTL}, func(a *assembler) { // TIOCSTI types into a terminal, where the waiting shell would run the text
			a.arg(1)
			a.jump(unix.BPF_JEQ, unix.TIOCSTI, "EPERM", "")
			a.jump(unix.BPF_JEQ, fioSetOwn, "EPERM", "")
			a.jump(unix.BPF_JEQ, siocSetPgrp, "EPERM", "")
			a.jump(unix.BPF_JEQ, unix.TIOCLINUX, "EPERM", "allow")
		}},
		{[]uint32{unix.SYS_PRLIMIT64}, ownThread(0)},
		{[]uint32{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR}, ownThread(0)},
		{[]uint32{unix.SYS_SETPRIORITY}, kindThenThread(prioProcess)},
		{[]uint32{unix.SYS_IOPRIO_SET}, kindThenThread(ioprioWhoPid)},
	}...)
}

// modeChecks refuse to make a program set-user-ID or set-group-ID. Landlock does not cover modes, and whoever executes such a program
// gets the rights of its owner, even if the sealed program may not write in its directory. The mode of open only matters with O_CREAT or
// O_TMPFILE.
func modeChecks() []argumentCheck {
	mode := func(arg int) func(*assembler) {
		return byArg(arg, unix.BPF_JSET, unix.S_ISUID|unix.S_ISGID, "EPERM", "allow")
	}
	opening := func(flags int) func(*assembler) {
		return func(a *assembler) {
			byArg(flags, unix.BPF_JSET, unix.O_CREAT|tmpfile, "", "allow")(a)
			mode(flags + 1)(a)
		}
	}
	return []argumentCheck{
		{append(modeSecond(), unix.SYS_FCHMOD), mode(1)},
		{[]uint32{unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_MKNODAT, unix.SYS_MKDIRAT}, mode(2)},
		{flagsSecond(), opening(1)},
		{[]uint32{unix.SYS_OPENAT}, opening(2)},
	}
}

// byArg decides by comparing one argument with a value.
func byArg(arg int, op uint16, value uint32, yes, no string) func(*assembler) {
	return func(a *assembler) {
		a.arg(arg)
		a.jump(op, value, yes, no)
	}
}

// checkSocket allows unix streams, TCP, the netlink socket that lists addresses and routes, and UDP if datagrams is set.
func checkSocket(a *assembler, datagrams bool) {
	a.arg(0)
	a.jump(unix.BPF_JEQ, unix.AF_UNIX, "unix", "")
	a.jump(unix.BPF_JEQ, unix.AF_INET, "inet", "")
	a.jump(unix.BPF_JEQ, unix.AF_INET6, "inet", "")
	a.jump(unix.BPF_JEQ, unix.AF_NETLINK, "", "EAFNOSUPPORT")
	a.arg(2)
	a.jump(unix.BPF_JEQ, unix.NETLINK_ROUTE, "allow", "EPROTONOSUPPORT")
	a.label("inet")
	a.arg(1)
	a.and(socketType)
	udp := "EACCES"
	if datagrams {
		udp = "udp"
	}
	a.jump(unix.BPF_JEQ, unix.SOCK_DGRAM, udp, "")
	a.jump(unix.BPF_JEQ, unix.SOCK_STREAM, "", "EACCES")
	a.arg(2)
	a.jump(unix.BPF_JEQ, 0, "allow", "")
	a.jump(unix.BPF_JEQ, unix.IPPROTO_TCP, "allow", "EPROTONOSUPPORT") // callers that ask for MPTCP fall back to TCP
	a.label("udp")
	a.arg(2)
	a.jump(unix.BPF_JEQ, 0, "allow", "")
	a.jump(unix.BPF_JEQ, unix.IPPROTO_UDP, "allow", "EACCES")
	a.label("unix") // no unix datagrams: it cannot be checked whether their receiver is inside
	a.arg(1)
	a.and(socketType)
	a.jump(unix.BPF_JEQ, unix.SOCK_STREAM, "allow", "")
	a.jump(unix.BPF_JEQ, unix.SOCK_SEQPACKET, "allow", "EACCES")
}

// checkSendto leaves messages that name a receiver to the supervisor.
func checkSendto(a *assembler) {
	a.arg(3)
	a.jump(unix.BPF_JSET, unix.MSG_FASTOPEN, "EOPNOTSUPP", "")
	a.arg(4)
	a.jump(unix.BPF_JEQ, 0, "", "notify")
	a.load(argOffset(4) + 4)
	a.jump(unix.BPF_JEQ, 0, "allow", "notify")
}

// sendmsg leaves the message to the supervisor: whether it names a receiver is in memory.
func sendmsg(flags int) func(*assembler) {
	return byArg(flags, unix.BPF_JSET, unix.MSG_FASTOPEN, "EOPNOTSUPP", "notify")
}

// assembler makes a program of classic BPF, in which jumps only lead forwards.
type assembler struct {
	code   []unix.SockFilter
	jumps  map[int][2]string // by the index of the instruction: the labels to go to if true and if false; "" is the next instruction
	labels map[string]int
}

func argOffset(arg int) uint32 { return uint32(16 + 8*arg) }

// arg loads the lower half of an argument: the kernel treats all checked arguments as 32 bits.
func (a *assembler) arg(arg int) { a.load(argOffset(arg)) }

func (a *assembler) load(offset uint32) {
	a.code = append(a.code, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset})
}

func (a *assembler) and(mask uint32) {
	a.code = append(a.code, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask})
}

func (a *assembler) jump(op uint16, k uint32, yes, no string) {
	a.jumps[len(a.code)] = [2]string{yes, no}
	a.code = append(a.code, unix.SockFilter{Code: unix.BPF_JMP | op, K: k})
}

func (a *assembler) label(name string) {
	a.labels[name] = len(a.code)
}

// end defines a label that returns a verdict.
func (a *assembler) end(name string, verdict uint32) {
	a.label(name)
	a.code = append(a.code, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict})
}

func (a *assembler) program() ([]unix.SockFilter, error) {
	for at, to := range a.jumps {
		var skip [2]uint8
		for i, name := range to {
			if name == "" {
				continue
			}
			target, ok := a.labels[name]
			n := target - at - 1
			if !ok || n < 0 || n > 255 {
				return nil, fmt.Errorf("filter: no jump from %d to %q", at, name)
			}
			skip[i] = uint8(n)
		}
		if code := &a.code[at]; code.Code == unix.BPF_JMP|unix.BPF_JA {
			code.K = uint32(skip[0])
		} else {
			code.Jt, code.Jf = skip[0], skip[1]
		}
	}
	return a.code, nil
}

// Signals do not interrupt a call that the supervisor has begun to answer (since Linux 5.19).
const filterFlags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

// install applies the filter to the calling thread for ever. The thread must not gain privileges by exec (NO_NEW_PRIVS). The result is
// the descriptor on which the supervisor receives notifications.
func install(program []unix.SockFilter) (listener int, err error) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, filterFlags, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	switch errno {
	case 0:
		return int(fd), nil
	case unix.EBUSY:
		return -1, fmt.Errorf("seccomp: another process supervises this one already")
	default:
		return -1, fmt.Errorf("seccomp: %w", errno)
	}
}

// filterSupported tests the flags without a program: a kernel that knows them fails with EFAULT.
func filterSupported() error {
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, filterFlags, 0)
	if errno != unix.EFAULT {
		return fmt.Errorf("seccomp: no user notification that waits for the answer: %w; Linux 5.19 is needed", errno)
	}
	return nil
}
