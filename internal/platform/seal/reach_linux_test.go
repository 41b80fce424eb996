package seal

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ollim/ollim/internal/testkit"
)

// outside is what listens outside the seal. Inside is a directory where sealed programs write.
type outside struct {
	Inside   string
	TCP      string // HOST:PORT
	Unix     string // a path
	Dgram    string // a path of a socket for datagrams
	Abstract string
	Allowed  string // a unix socket that the rules name
	UDP      string // HOST:PORT
	DNS      string // HOST:53, "" for a user who may not make it
	Network  bool   // of the rules
}

// reach is one attempt to connect or send, and the error that a program sees without and with Rules.Network; "" is success.
type reach struct {
	try       func(outside) error
	none, any string
}

const (
	denied  = "permission denied"
	refuses = "connection refused"
)

// TestReach makes every attempt as a sealed program.
func TestReach(t *testing.T) {
	t.Parallel()
	testReach(t)
}

// TestReachOfUser is the same as a user without privileges.
func TestReachOfUser(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "TestReach once more, as a user without privileges")
	if testkit.Unprivileged(t) {
		testReach(t)
	}
}

func testReach(t *testing.T) {
	for name, network := range map[string]bool{"none": false, "any": true} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			out, touched := newOutside(t, p)
			p.Rules.Network, p.Rules.Sockets = network, []string{out.Allowed}
			out.Network = network
			arg, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			cmd := testkit.Child(t, "reach", string(arg))
			cmd.Dir = p.Inside
			cmd.Stderr = nil
			results := output(t, p.seal(t), cmd)
			for name, r := range reaches() {
				want := r.none
				if network {
					want = r.any
				}
				got, found := lineOf(results, name)
				if !found || want == "" && got != "" || !strings.Contains(got, want) {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if n := touched.Load(); n > 0 && !network {
				t.Errorf("%d connections came out", n)
			}
			if t.Failed() {
				t.Log(results)
			}
		})
	}
}

func lineOf(results, name string) (string, bool) {
	_, rest, found := strings.Cut("\n"+results, "\n"+name+"\t")
	line, _, _ := strings.Cut(rest, "\n")
	return line, found
}

// newOutside listens on everything. The number counts what arrives at TCP; anything that arrives elsewhere fails the test.
func newOutside(t *testing.T, p place) (outside, *atomic.Int32) {
	t.Helper()
	o := outside{Inside: p.Inside, Unix: filepath.Join(p.Outside, "socket"), Dgram: filepath.Join(p.Outside, "dgram"), Allowed: filepath.Join(p.Outside, "allowed")}
	o.Abstract = fmt.Sprintf("@ollim-seal-reach-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
	var touched atomic.Int32
	listen := func(network, address string, arrived func()) string {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				arrived()
				_ = conn.Close()
			}
		}()
		return l.Addr().String()
	}
	o.TCP = listen("tcp", "127.0.0.1:0", func() { touched.Add(1) })
	listen("unix", o.Unix, func() { t.Error("a connection came to the socket outside") })
	listen("unix", o.Abstract, func() { t.Error("a connection came to the abstract socket outside") })
	listen("unix", o.Allowed, func() {})
	datagrams(t, "unixgram", o.Dgram, func(string) { t.Error("a datagram came to the socket outside") })
	o.UDP = datagrams(t, "udp", "127.0.0.1:0", func(string) { t.Error("a datagram came out") })
	if os.Getuid() == 0 {
		o.DNS = datagrams(t, "udp", fmt.Sprintf("127.53.%d.%d:53", os.Getpid()>>8&255, os.Getpid()&255), func(question string) {
			if question != "question" {
				t.Errorf("DNS: %q", question)
			}
		})
	}
	return o, &touched
}

// datagrams answers every datagram with itself.
func datagrams(t *testing.T, network, address string, arrived func(string)) string {
	t.Helper()
	conn, err := net.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		data := make([]byte, 100)
		for {
			n, from, err := conn.ReadFrom(data)
			if err != nil {
				return
			}
			arrived(string(data[:n]))
			_, _ = conn.WriteTo(data[:n], from)
		}
	}()
	return conn.LocalAddr().String()
}

// reachAll is the sealed program: it prints a line with the error for each attempt.
func reachAll(args []string) error {
	var o outside
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return err
	}
	for name, r := range reaches() {
		message := ""
		if err := r.try(o); err != nil {
			message = err.Error()
		}
		fmt.Printf("%s\t%s\n", name, strings.ReplaceAll(message, "\n", " "))
	}
	return nil
}

func reaches() map[string]reach {
	all := map[string]reach{}
	for _, group := range []map[string]reach{tcpReaches(), unixReaches(), datagramReaches(), socketReaches(), callReaches()} {
		for name, r := range group {
			all[name] = r
		}
	}
	return all
}

func dial(network, address string) error {
	conn, err := net.DialTimeout(network, address, 10*time.Second)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// within dials what listens inside at the address, by a name made of its port.
func within(network, address string, name func(port string) string) func(outside) error {
	return func(outside) error {
		l, err := net.Listen(network, address)
		if err != nil {
			return err
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		return dial("tcp", name(port))
	}
}

func tcpReaches() map[string]reach {
	at := func(host string) func(string) string {
		return func(port string) string { return net.JoinHostPort(host, port) }
	}
	return map[string]reach{
		"tcp outside":            {func(o outside) error { return dial("tcp", o.TCP) }, denied, ""},
		"tcp outside as IPv6":    {func(o outside) error { return blocking(unix.AF_INET6, mapped(o.TCP)) }, denied, ""},
		"tcp inside":             {within("tcp", "127.0.0.1:0", at("127.0.0.1")), "", ""},
		"tcp inside by name":     {within("tcp", "127.0.0.1:0", at("localhost")), "", ""},
		"tcp inside to 0.0.0.0":  {within("tcp4", "127.0.0.1:0", at("0.0.0.0")), "", ""},
		"tcp inside, dual stack": {within("tcp", "[::]:0", at("127.0.0.1")), "", ""},
		"tcp inside, IPv6":       {within("tcp", "[::1]:0", at("::1")), "", ""},
		"tcp inside, other host": {func(o outside) error {
			if o.Network {
				return nil // whatever the network answers
			}
			return within("tcp", "0.0.0.0:0", at("192.0.2.1"))(o)
		}, denied, ""},
		"tcp where nobody listens": {func(outside) error { return dial("tcp", unusedPort()) }, refuses, refuses},
		"tcp inside, blocking": {func(outside) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer l.Close()
			return errors.Join(blocking(unix.AF_INET, addressOf(l.Addr().String())), blocking(unix.AF_INET6, mapped(l.Addr().String())))
		}, "", ""},
		"tcp outside, connecting by the first write": {func(o outside) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1), unix.Connect(fd, addressOf(o.TCP)))
		}, denied, ""},
		"tcp outside, address changed meanwhile": {raceAddress, denied, ""},
		"tcp after its process is undumpable": {func(outside) error {
			_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
			defer unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
			err := within("tcp", "127.0.0.1:0", at("127.0.0.1"))(outside{})
			if os.Getuid() != 0 && errors.Is(err, unix.EPERM) {
				return nil // it fails, which is all that can be done
			}
			return err
		}, "", ""},
	}
}

func unusedPort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err.Error()
	}
	defer l.Close()
	return l.Addr().String()
}

func addressOf(address string) *unix.SockaddrInet4 {
	host, port, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(port)
	return &unix.SockaddrInet4{Port: n, Addr: [4]byte(net.ParseIP(host).To4())}
}

func mapped(address string) *unix.SockaddrInet6 {
	a := addressOf(address)
	to := &unix.SockaddrInet6{Port: a.Port}
	copy(to.Addr[:], net.IP(a.Addr[:]).To16())
	return to
}

func blocking(family int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
		return errors.New("the socket does not block any more")
	}
	return nil
}

// hangUp ends each connection to a listener at once, until the listener is closed.
func hangUp(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_ = conn.Close()
	}
}

// raceAddress connects many times while another thread changes the port from one inside to one outside and back. It fails unless
// a connection came out, which the listener counts.
func raceAddress(o outside) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go hangUp(l)
	in, out := addressOf(l.Addr().String()), addressOf(o.TCP)
	swap := func(port int) uint32 { return uint32(unix.AF_INET) | uint32(port>>8&255)<<16 | uint32(port&255)<<24 }
	raw := &[4]uint32{swap(in.Port), *(*uint32)(unsafe.Pointer(&in.Addr))}
	var stop atomic.Bool
	defer stop.Store(true)
	go func() {
		runtime.LockOSThread()
		for !stop.Load() {
			atomic.StoreUint32(&raw[0], swap(out.Port))
			atomic.StoreUint32(&raw[0], swap(in.Port))
		}
	}()
	var passed, failed int
	var last error
	for range 1000 {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(raw)), 16); errno != 0 {
			failed, last = failed+1, errno
		} else if peer, err := unix.Getpeername(fd); err == nil && peer.(*unix.SockaddrInet4).Port == out.Port {
			passed++
		}
		unix.Close(fd)
	}
	if passed == 0 && failed > 0 {
		return last
	}
	return nil
}
