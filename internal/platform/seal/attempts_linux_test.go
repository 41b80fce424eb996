package seal

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ollim/ollim/internal/testkit"
)

// TestAttempts: what a program can do outside, it cannot do when it is sealed.
func TestAttempts(t *testing.T) { testAttempts(t) }

// TestAttemptsOfUser is the same as a user without privileges.
func TestAttemptsOfUser(t *testing.T) {
	if testkit.Unprivileged(t) {
		testAttempts(t)
	}
}

func testAttempts(t *testing.T) {
	free := newPlace(t)
	victim := exec.Command("/bin/sleep", "1000")
	victim.Env = []string{"SECRET=secret"}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	socket, err := net.Listen("unix", fmt.Sprintf("@ollim-seal-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	confined := newPlace(t)
	s := confined.seal(t)
	for _, p := range []*place{&free, &confined} {
		p.Victim, p.Socket = victim.Process.Pid, socket.Addr().String()
		p.populate(t)
	}
	allowed, stopped := results(t, free, (*exec.Cmd).Start), results(t, confined, s.Start)
	for name := range attempts() {
		if why, tried := allowed[name]; !tried || why != "" && !privileged(name) {
			t.Errorf("%s: fails without a seal: %s", name, why)
		}
		if why, tried := stopped[name]; !tried || why == "" {
			t.Errorf("%s: is possible", name)
		} else {
			t.Logf("%-40s %s", name, why)
		}
	}
	if got := results(t, confined, s.Start)["read"]; !strings.Contains(got, "denied") {
		t.Errorf("read: %s", got)
	}
}

// privileged reports whether an attempt may fail without a seal too: because the user is not root, or because this process has
// made itself undumpable.
func privileged(name string) bool {
	return os.Getuid() != 0 && (strings.HasPrefix(name, "as root: ") || strings.HasPrefix(name, "parent: "))
}

func (p place) populate(t *testing.T) {
	t.Helper()
	for _, name := range []string{"unlinked", "renamed", "exchanged", "truncated", "linked", "moved"} {
		write(t, filepath.Join(p.Outside, name), "secret")
	}
	for _, name := range []string{"own", "other", "exchanged"} {
		write(t, filepath.Join(p.Inside, name), "own")
	}
	write(t, filepath.Join(p.Outside, "program"), "#!/bin/sh\n")
	for _, err := range []error{
		os.Chmod(filepath.Join(p.Outside, "program"), 0o700),
		os.Mkdir(filepath.Join(p.Outside, "empty"), 0o700),
		os.Mkdir(filepath.Join(p.Outside, "mount"), 0o700),
		os.Symlink(p.Outside, filepath.Join(p.Inside, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// attempts returns what a sealed program must not be able to do. An attempt returns nil if it succeeds.
func attempts() map[string]func(place) error {
	all := map[string]func(place) error{}
	for _, group := range []map[string]func(place) error{files(), modes(), processes(), signals()} {
		for name, try := range group {
			all[name] = try
		}
	}
	return all
}

func files() map[string]func(place) error {
	read := func(path string) error {
		_, err := os.ReadFile(path)
		return err
	}
	return map[string]func(place) error{
		"read":               func(p place) error { return read(p.Outside + "/secret") },
		"read by a link":     func(p place) error { return read(p.Inside + "/link/secret") },
		"read by ..":         func(p place) error { return read(p.Inside + "/../outside/secret") },
		"read by its root":   func(p place) error { return read("/proc/self/root" + p.Outside + "/secret") },
		"read after chdir":   func(p place) error { return errors.Join(os.Chdir(p.Outside), read("secret"), os.Chdir(p.Inside)) },
		"read by its cwd":    func(place) error { return read("/proc/self/cwd/../outside/secret") },
		"list":               func(p place) error { _, err := os.ReadDir(p.Outside); return err },
		"execute":            func(p place) error { return exec.Command(p.Outside + "/program").Run() },
		"append":             func(p place) error { return open(p.Outside+"/secret", os.O_WRONLY|os.O_APPEND) },
		"make a file":        func(p place) error { return open(p.Outside+"/made", os.O_WRONLY|os.O_CREATE) },
		"make a nameless":    func(p place) error { return open(p.Outside, unix.O_TMPFILE|os.O_WRONLY) },
		"make a directory":   func(p place) error { return os.Mkdir(p.Outside+"/directory", 0o700) },
		"make a link":        func(p place) error { return os.Symlink("secret", p.Outside+"/symlink") },
		"make a fifo":        func(p place) error { return unix.Mkfifo(p.Outside+"/fifo", 0o600) },
		"make a socket":      func(p place) error { return unix.Mknod(p.Outside+"/socket", unix.S_IFSOCK|0o600, 0) },
		"hard link in":       func(p place) error { return os.Link(p.Outside+"/linked", p.Inside+"/linked") },
		"hard link out":      func(p place) error { return os.Link(p.Inside+"/own", p.Outside+"/put") },
		"rename in":          func(p place) error { return os.Rename(p.Outside+"/renamed", p.Inside+"/renamed") },
		"rename out":         func(p place) error { return os.Rename(p.Inside+"/other", p.Outside+"/other") },
		"rename outside":     func(p place) error { return os.Rename(p.Outside+"/moved", p.Outside+"/there") },
		"exchange":           func(p place) error { return exchange(p.Inside+"/exchanged", p.Outside+"/exchanged") },
		"truncate":           func(p place) error { return os.Truncate(p.Outside+"/truncated", 0) },
		"unlink":             func(p place) error { return unix.Unlink(p.Outside + "/unlinked") },
		"remove a directory": func(p place) error { return unix.Rmdir(p.Outside + "/empty") },
		"as root: device in a writable folder": func(p place) error {
			return unix.Mknod(p.Inside+"/device", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
		},
		"as root: block device": func(p place) error {
			return unix.Mknod(p.Inside+"/block", unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0)))
		},
		"as root: mount": func(p place) error {
			return errors.Join(unix.Mount(p.Outside, p.Outside+"/mount", "", unix.MS_BIND, ""), unix.Unmount(p.Outside+"/mount", 0))
		},
		"as root: chroot": func(place) error { return unix.Chroot("/") },
		"as root: another user's file": func(p place) error {
			return os.Chown(p.Inside+"/own", 1, 1)
		},
	}
}

// modes are attempts to make a program set-user-ID or set-group-ID, of the owner's and of the agent's own, by every call that takes a mode.
func modes() map[string]func(place) error {
	const mode = 0o755
	all := map[string]func(place) error{}
	for name, bit := range map[string]uint32{"set-user-ID": unix.S_ISUID, "set-group-ID": unix.S_ISGID} {
		for call, try := range map[string]func(p place, mode uint32) error{
			"chmod outside": func(p place, mode uint32) error { return unix.Chmod(p.Outside+"/program", mode) },
			"chmod":         func(p place, mode uint32) error { return unix.Chmod(p.Inside+"/own", mode) },
			"fchmod": func(p place, mode uint32) error {
				f, err := os.Open(p.Inside + "/own")
				if err != nil {
					return err
				}
				defer func() { _ = f.Close() }()
				return unix.Fchmod(int(f.Fd()), mode)
			},
			"fchmodat2": func(p place, mode uint32) error {
				return unix.Fchmodat(unix.AT_FDCWD, p.Inside+"/own", mode, unix.AT_SYMLINK_NOFOLLOW)
			},
			"open": func(p place, mode uint32) error {
				return closing(unix.Open(fresh(p), unix.O_CREAT|unix.O_WRONLY, mode))
			},
			"creat": func(p place, mode uint32) error { return closing(unix.Creat(fresh(p), mode)) },
			"tmpfile": func(p place, mode uint32) error {
				return closing(unix.Open(p.Inside, unix.O_TMPFILE|unix.O_WRONLY, mode))
			},
			"openat2": func(p place, mode uint32) error {
				return closing(unix.Openat2(unix.AT_FDCWD, fresh(p), &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: uint64(mode)}))
			},
			"mknod":   func(p place, mode uint32) error { return unix.Mknod(fresh(p), unix.S_IFREG|mode, 0) },
			"mknodat": func(p place, mode uint32) error { return unix.Mknodat(unix.AT_FDCWD, fresh(p), unix.S_IFREG|mode, 0) },
			"mkdir":   func(p place, mode uint32) error { return unix.Mkdir(fresh(p), mode) },
			"mkdirat": func(p place, mode uint32) error { return unix.Mkdirat(unix.AT_FDCWD, fresh(p), mode) },
		} {
			all[name+": "+call] = func(p place) error { return try(p, mode|bit) }
		}
	}
	return all
}

// fresh returns a path inside at which nothing is.
func fresh(p place) string {
	path := p.Inside + "/fresh"
	_ = os.RemoveAll(path)
	return path
}

func closing(fd int, err error) error {
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

func open(path string, flags int) error {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// processes are attempts on the memory and files of a process outside, and of the one that sealed this one, thread by thread.
func processes() map[string]func(place) error {
	all := map[string]func(place) error{
		"ptrace": func(p place) error {
			if err := unix.PtraceSeize(p.Victim); err != nil {
				return err
			}
			return nil // the end of this process detaches it
		},
		"process_vm_readv": func(p place) error { return readMemory(p.Victim) },
		"pidfd_getfd": func(p place) error {
			fd, err := unix.PidfdOpen(p.Victim, 0)
			if err != nil {
				return err
			}
			_, err = unix.PidfdGetfd(fd, 0, 0)
			return err
		},
		"as root: setns": func(p place) error {
			fd, err := unix.PidfdOpen(p.Victim, 0)
			if err != nil {
				return err
			}
			return unix.Setns(fd, unix.CLONE_NEWUTS)
		},
	}
	for _, name := range []string{"environ", "mem", "maps", "root/", "cwd/", "fd/0", "ns/pid"} {
		all["victim: "+name] = func(p place) error { return access(fmt.Sprintf("/proc/%d/%s", p.Victim, name)) }
		all["parent: "+name] = func(place) error {
			return anyThread(func(tid int) error { return access(fmt.Sprintf("/proc/%d/task/%d/%s", os.Getppid(), tid, name)) })
		}
	}
	return all
}

// access opens a file, or what a link leads to.
func access(path string) error {
	if strings.HasSuffix(path, "ns/pid") {
		_, err := os.Readlink(path)
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// readMemory reads from a mapped page of a process, whose address is that of the vdso's data in this one if need be.
func readMemory(pid int) error {
	var page [8]byte
	local := []unix.Iovec{{Base: &page[0], Len: 8}}
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&page)), Len: 8}}
	_, err := unix.ProcessVMReadv(pid, local, remote, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil // permitted: only the address is wrong
	}
	return err
}

// anyThread returns nil if f succeeds for a thread of the parent.
func anyThread(f func(tid int) error) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", os.Getppid()))
	if err != nil {
		return err
	}
	err = errors.New("no threads")
	for _, thread := range threads {
		tid, _ := strconv.Atoi(thread.Name())
		if err = f(tid); err == nil {
			return nil
		}
	}
	return err
}

func signals() map[string]func(place) error {
	all := map[string]func(place) error{
		"signal a process": func(p place) error { return unix.Kill(p.Victim, 0) },
		"signal by pidfd": func(p place) error {
			fd, err := unix.PidfdOpen(p.Victim, 0)
			if err != nil {
				return err
			}
			return unix.PidfdSendSignal(fd, 0, nil, 0)
		},
		"connect to an abstract socket": func(p place) error {
			c, err := net.Dial("unix", p.Socket)
			if err != nil {
				return err
			}
			return c.Close()
		},
	}
	for name, try := range map[string]func(tid int) error{
		"kill":   func(tid int) error { return unix.Kill(tid, 0) },
		"tkill":  func(tid int) error { return system(unix.SYS_TKILL, tid, 0) },
		"tgkill": func(tid int) error { return unix.Tgkill(os.Getppid(), tid, 0) },
		"rt_sigqueueinfo": func(tid int) error {
			info := [16]int64{} // si_code 0 would claim to be of kill, so it is refused; SI_QUEUE is not
			*(*int32)(unsafe.Pointer(uintptr(unsafe.Pointer(&info)) + 8)) = -1
			return system(unix.SYS_RT_SIGQUEUEINFO, tid, 0, int(uintptr(unsafe.Pointer(&info))))
		},
		"pidfd of a thread": func(tid int) error {
			fd, err := unix.PidfdOpen(tid, unix.PIDFD_THREAD)
			if err != nil {
				return err
			}
			return unix.PidfdSendSignal(fd, 0, nil, 0)
		},
		"signal by a descriptor": ownBy,
		"signal by a socket's owner": func(tid int) error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			owner := int32(tid)
			return system(unix.SYS_IOCTL, fd, fioSetOwn, int(uintptr(unsafe.Pointer(&owner))))
		},
		"signal by a directory of /proc": func(tid int) error {
			f, err := os.Open(fmt.Sprintf("/proc/%d", tid))
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			return unix.PidfdSendSignal(int(f.Fd()), 0, nil, 0)
		},
	} {
		all["thread of the parent: "+name] = func(place) error { return anyThread(try) }
	}
	return all
}

func system(number uintptr, args ...int) error {
	var a [6]uintptr
	for i, arg := range args {
		a[i] = uintptr(arg)
	}
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// ownBy makes the kernel signal a thread when a pipe becomes readable.
func ownBy(tid int) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	owner := struct{ kind, pid int32 }{0, int32(tid)}
	return system(unix.SYS_FCNTL, int(r.Fd()), unix.F_SETOWN_EX, int(uintptr(unsafe.Pointer(&owner))))
}
