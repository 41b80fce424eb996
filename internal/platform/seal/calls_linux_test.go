package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// datagramReaches send UDP. Without Rules.Network there is no socket for it.
func datagramReaches() map[string]reach {
	udp := func(use func(fd int, o outside) error) func(outside) error {
		return func(o outside) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return use(fd, o)
		}
	}
	// answered also succeeds where the test could not make a server.
	answered := func(ask func(fd int, to unix.Sockaddr) error) func(outside) error {
		return udp(func(fd int, o outside) error {
			if o.DNS == "" {
				return nil
			}
			if err := ask(fd, addressOf(o.DNS)); err != nil {
				return err
			}
			_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
			answer := make([]byte, 100)
			n, err := unix.Read(fd, answer)
			if err == nil && string(answer[:n]) != "question" {
				err = fmt.Errorf("answer %q", answer[:n])
			}
			return err
		})
	}
	question := []byte("question")
	return map[string]reach{
		"dns": {answered(func(fd int, to unix.Sockaddr) error {
			if err := unix.Connect(fd, to); err != nil {
				return err
			}
			_, err := unix.Write(fd, question)
			return err
		}), denied, ""},
		"dns by sendto":   {answered(func(fd int, to unix.Sockaddr) error { return unix.Sendto(fd, question, 0, to) }), denied, ""},
		"dns by sendmsg":  {answered(func(fd int, to unix.Sockaddr) error { return unix.Sendmsg(fd, question, nil, to, 0) }), denied, ""},
		"dns by sendmmsg": {answered(func(fd int, to unix.Sockaddr) error { return sendmmsg(fd, to.(*unix.SockaddrInet4), question) }), denied, ""},
		"dns by sendmmsg, connected": {answered(func(fd int, to unix.Sockaddr) error {
			return errors.Join(unix.Connect(fd, to), sendmmsg(fd, nil, question))
		}), denied, ""},
		"udp by sendto":   {udp(func(fd int, o outside) error { return unix.Sendto(fd, question, 0, addressOf(o.UDP)) }), denied, denied},
		"udp by sendmsg":  {udp(func(fd int, o outside) error { return unix.Sendmsg(fd, question, nil, addressOf(o.UDP), 0) }), denied, denied},
		"udp by sendmmsg": {udp(func(fd int, o outside) error { return sendmmsg(fd, addressOf(o.UDP), question) }), denied, denied},
		"a message of endless length": {udp(func(fd int, _ outside) error {
			to := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: 53 << 8}
			_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&question[0])), ^uintptr(0), 0,
				uintptr(unsafe.Pointer(&to)), unsafe.Sizeof(to))
			return errno
		}), denied, "message too long"},
		"udp connected for its own address": {udp(func(fd int, o outside) error { // as getaddrinfo does
			if err := unix.Connect(fd, addressOf(o.UDP)); err != nil {
				return err
			}
			_, _ = unix.Write(fd, question) // must not arrive
			own, err := unix.Getsockname(fd)
			if err == nil && own.(*unix.SockaddrInet4).Addr != [4]byte{127, 0, 0, 1} {
				err = fmt.Errorf("%v", own)
			}
			return err
		}), denied, ""},
		"a length that is negative": {udp(func(fd int, _ outside) error {
			to := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: 53 << 8}
			_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&question[0])), ^uintptr(0), 0,
				uintptr(unsafe.Pointer(&to)), unix.SizeofSockaddrInet4)
			if errno != unix.EMSGSIZE {
				return fmt.Errorf("%w, want EMSGSIZE", errno)
			}
			return nil
		}), denied, ""},
		"unix datagrams": {func(outside) error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0); return err }, denied, denied},
		"unix datagram pair": {pairOf(func(pair [2]int, _ outside) error {
			_, err := unix.Write(pair[0], question)
			return errors.Join(err, unix.Send(pair[0], question, 0), unix.Sendmsg(pair[0], question, nil, nil, 0))
		}), "", ""},
		"unix datagram pair, outside by sendto": {pairOf(func(pair [2]int, o outside) error {
			return unix.Sendto(pair[0], question, 0, &unix.SockaddrUnix{Name: o.Dgram})
		}), denied, denied},
		"unix datagram pair, outside by sendmsg": {pairOf(func(pair [2]int, o outside) error {
			return unix.Sendmsg(pair[0], question, nil, &unix.SockaddrUnix{Name: o.Dgram}, 0)
		}), denied, denied},
		"unix datagram pair, connected outside": {pairOf(func(pair [2]int, o outside) error {
			return unix.Connect(pair[0], &unix.SockaddrUnix{Name: o.Dgram})
		}), refuses, refuses},
		"unix datagram pair, disconnected": {pairOf(func(pair [2]int, o outside) error {
			if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(pair[0]), uintptr(unsafe.Pointer(&unix.RawSockaddr{})), 16); errno != 0 {
				return errno
			}
			return unix.Sendto(pair[0], question, 0, &unix.SockaddrUnix{Name: o.Dgram})
		}), denied, denied},
	}
}

// pairOf uses a pair of sockets for datagrams, which the other side then reads.
func pairOf(use func(pair [2]int, o outside) error) func(outside) error {
	return func(o outside) error {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) }()
		if err := use(pair, o); err != nil {
			return err
		}
		for data := make([]byte, 100); ; {
			n, err := unix.Read(pair[1], data)
			if errors.Is(err, unix.EAGAIN) {
				return nil
			}
			if err != nil || string(data[:n]) != "question" {
				return fmt.Errorf("%q %w", data[:n], err)
			}
		}
	}
}

// sendmmsg sends one message as the second of two, after an empty one to itself if it names no receiver.
func sendmmsg(fd int, to *unix.SockaddrInet4, data []byte) error {
	type mmsghdr struct {
		unix.Msghdr
		n uint32
		_ uint32
	}
	piece := unix.Iovec{Base: &data[0], Len: uint64(len(data))}
	messages := []mmsghdr{{Msghdr: unix.Msghdr{Iov: &piece, Iovlen: 1}}}
	var name unix.RawSockaddrInet4
	if to != nil {
		name = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: uint16(to.Port>>8 | to.Port<<8), Addr: to.Addr}
		messages[0].Name, messages[0].Namelen = (*byte)(unsafe.Pointer(&name)), unix.SizeofSockaddrInet4
	}
	n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&messages[0])), uintptr(len(messages)), 0, 0, 0)
	runtime.KeepAlive(&name)
	if errno != 0 {
		return errno
	}
	if int(n) != len(messages) || messages[0].n != uint32(len(data)) {
		return fmt.Errorf("%d messages, %d bytes", n, messages[0].n)
	}
	return nil
}

func socketReaches() map[string]reach {
	socket := func(domain, kind, protocol int) func(outside) error {
		return func(outside) error {
			fd, err := unix.Socket(domain, kind, protocol)
			if err == nil {
				unix.Close(fd)
			}
			return err
		}
	}
	const family, protocol, fastOpen = "address family not supported", "protocol not supported", "operation not supported"
	return map[string]reach{
		"mptcp":            {socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), protocol, protocol},
		"mptcp, IPv6":      {socket(unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), protocol, protocol},
		"sctp":             {socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP), protocol, protocol},
		"udp-lite":         {socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE), denied, denied},
		"ping":             {socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP), denied, denied},
		"raw":              {socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP), denied, denied},
		"vsock":            {socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0), family, family},
		"packet":           {socket(unix.AF_PACKET, unix.SOCK_RAW, 0), family, family},
		"alg":              {socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0), family, family},
		"netlink diag":     {socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG), protocol, protocol},
		"netlink uevent":   {socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT), protocol, protocol},
		"tipc pair":        {func(outside) error { _, err := unix.Socketpair(unix.AF_TIPC, unix.SOCK_STREAM, 0); return err }, family, family},
		"interfaces":       {func(outside) error { _, err := net.Interfaces(); return err }, "", ""},
		"route is changed": {changeRoute, "operation not permitted", "operation not permitted"},
		"fast open": {func(o outside) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, addressOf(o.TCP))
		}, fastOpen, fastOpen},
		"fast open by sendmsg": {func(o outside) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Sendmsg(fd, []byte("x"), nil, addressOf(o.TCP), unix.MSG_FASTOPEN)
		}, fastOpen, fastOpen},
		"a long message by sendmsg":      {longMessage, "", ""},
		"a message that is not readable": {unreadableMessage, "bad address", "bad address"},
	}
}

// changeRoute asks netlink to take the loopback interface down, with the name of the receiver: the kernel counts only the rights
// of the sender then.
func changeRoute(outside) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const length = unix.SizeofNlMsghdr + unix.SizeofIfInfomsg
	request := struct {
		unix.NlMsghdr
		unix.IfInfomsg
	}{
		unix.NlMsghdr{Len: length, Type: unix.RTM_NEWLINK, Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK},
		unix.IfInfomsg{Index: 1, Flags: unix.IFF_UP, Change: unix.IFF_UP}, // it is up, so that nothing changes if this succeeds
	}
	if err := unix.Sendto(fd, (*[length]byte)(unsafe.Pointer(&request))[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 1000)
	n, err := unix.Read(fd, answer)
	if err != nil || n < unix.SizeofNlMsghdr+4 {
		return fmt.Errorf("%d bytes: %w", n, err)
	}
	if errno := *(*int32)(unsafe.Pointer(&answer[unix.SizeofNlMsghdr])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}

// longMessage sends in pieces more than a socket holds, which takes as long as the reader.
func longMessage(outside) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	got := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(os.NewFile(uintptr(pair[1]), "reader"))
		got <- all
	}()
	n, err := unix.SendmsgBuffers(pair[0], [][]byte{data[:7], nil, data[7:1000], data[1000:]}, nil, nil, 0)
	unix.Close(pair[0])
	if all := <-got; err != nil || n != len(data) || !bytes.Equal(all, data) {
		return fmt.Errorf("%d bytes sent, %d received: %w", n, len(all), err)
	}
	return nil
}

// unreadableMessage sends memory that cannot be read; zeros must not arrive in its place.
func unreadableMessage(outside) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return err
	}
	return unix.Sendmsg(pair[0], page, nil, nil, 0)
}

func callReaches() map[string]reach {
	all := map[string]reach{}
	add := func(name, want string, nr uintptr, args ...uintptr) {
		args = append(args, 0, 0, 0, 0, 0, 0)
		all["call "+name] = reach{func(outside) error {
			if _, _, errno := unix.Syscall6(nr, args[0], args[1], args[2], args[3], args[4], args[5]); errno != 0 {
				return errno
			}
			return nil
		}, want, want}
	}
	const absent, forbidden = "not implemented", "not permitted"
	limit := &unix.Rlimit{Cur: 100, Max: 100}
	parent := uintptr(os.Getppid())
	for name, calls := range refused() {
		want := map[string]string{"ENOSYS": absent, "EPERM": forbidden}[name]
		for _, nr := range calls {
			add(fmt.Sprint(nr), want, uintptr(nr))
		}
	}
	add("of x32", absent, 0x40000000+39)
	add("clone of a user namespace", forbidden, unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD))
	add("unshare of a network", forbidden, unix.SYS_UNSHARE, unix.CLONE_NEWNET)
	add("unshare of a user namespace", forbidden, unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	add("ioctl TIOCSTI", forbidden, unix.SYS_IOCTL, 0, unix.TIOCSTI)
	add("ioctl TIOCLINUX", forbidden, unix.SYS_IOCTL, 0, unix.TIOCLINUX)
	add("prlimit of the parent", forbidden, unix.SYS_PRLIMIT64, parent, unix.RLIMIT_CORE, uintptr(unsafe.Pointer(limit)))
	add("setpriority of the parent", forbidden, unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, parent, 1)
	add("setpriority of the user", forbidden, unix.SYS_SETPRIORITY, unix.PRIO_USER, 0, 1)
	add("setpriority of itself", "", unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, uintptr(os.Getpid()), 19)
	add("sched_setscheduler of the parent", forbidden, unix.SYS_SCHED_SETSCHEDULER, parent, 0, uintptr(unsafe.Pointer(limit)))
	add("ioprio_set of the parent", forbidden, unix.SYS_IOPRIO_SET, ioprioWhoPid, parent, 0)
	all["call sched_setaffinity of the parent"] = reach{func(outside) error { return affinity(int(parent)) }, forbidden, forbidden}
	all["call sched_setaffinity of its own thread"] = reach{func(outside) error { return affinity(unix.Gettid()) }, "", ""}
	all["call that a signal would interrupt"] = reach{manySignals, "", ""}
	return all
}

func affinity(thread int) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(thread, &set); err != nil {
		return err
	}
	return unix.SchedSetaffinity(thread, &set)
}

// manySignals connects while its thread gets signals without SA_RESTART's help: Go's are handled, so the call may not fail.
func manySignals(outside) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go hangUp(l)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread, done := unix.Gettid(), make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Microsecond):
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			}
		}
	}()
	for range 300 {
		if err := blocking(unix.AF_INET, addressOf(l.Addr().String())); err != nil {
			return err
		}
	}
	return nil
}
