package seal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ollim/ollim/internal/testkit"
)

// full returns the address of a listener that answers no connection any more.
func full() (*unix.SockaddrInet4, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)); err != nil {
		return nil, err
	}
	to, err := unix.Getsockname(fd)
	if err != nil {
		return nil, err
	}
	for {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		if err := unix.Connect(fd, to); !errors.Is(err, unix.EINPROGRESS) && err != nil {
			return nil, err
		}
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, err := unix.Poll(ready, 1000); n == 0 && err == nil {
			return to.(*unix.SockaddrInet4), nil
		}
	}
}

const slowConnects = 100

// slow is a sealed program whose threads wait for connections, while one of them connects elsewhere.
func slow([]string) error {
	to, err := full()
	if err != nil {
		return err
	}
	for range slowConnects {
		own := *to // Connect writes into it
		go func() {
			if err := blocking(unix.AF_INET, &own); err != nil {
				fmt.Println("slow:", err)
			}
		}()
	}
	fmt.Println("waiting")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	at := func(port string) string { return "127.0.0.1:" + port }
	for range 20 {
		if err := within("tcp", "127.0.0.1:0", at)(outside{}); err != nil {
			return err
		}
	}
	fmt.Println("connected")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// TestSlowConnects: many calls that wait stop no other, and take nothing more after their process has ended.
func TestSlowConnects(t *testing.T) {
	p := newPlace(t)
	p.Rules.Network = true
	s := p.seal(t)
	cmd := testkit.Child(t, "slow")
	lines, in := piped(t, cmd)
	if err := s.Start(cmd); err != nil {
		t.Fatal(err)
	}
	expect(t, lines, "waiting")
	waitFor(t, "the slow calls", func() bool { return len(s.run.network.slots) == slowConnects })
	fmt.Fprintln(in)
	expect(t, lines, "connected")
	waitFor(t, "the end of the call that did not wait", func() bool { return len(s.run.network.slots) == slowConnects })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	waitFor(t, "the end of the calls", func() bool { return len(s.run.network.slots) == 0 })
}

// TestTooManyConnects: the calls beyond the limit fail, and none blocks.
func TestTooManyConnects(t *testing.T) {
	p := newPlace(t)
	s := p.seal(t)
	for range cap(s.run.network.slots) {
		s.run.network.slots <- struct{}{}
	}
	cmd := testkit.Child(t, "dial", "127.0.0.1:1")
	cmd.Stdin = strings.NewReader("once\n")
	if got := output(t, s, cmd); !strings.Contains(got, "resource temporarily unavailable") {
		t.Errorf("%q", got)
	}
}

// TestInterruptedConnect: a signal ends a connect that waits, as its handler wants.
func TestInterruptedConnect(t *testing.T) {
	t.Parallel()
	requireProgram(t, "perl", "/usr/bin:/bin")
	p := newPlace(t)
	const script = `use Socket; use POSIX; use Time::HiRes qw(ualarm);
socket(my $s, PF_INET, SOCK_STREAM, 0); bind($s, sockaddr_in(0, INADDR_LOOPBACK)); listen($s, 0);
my ($n, $to, @c) = (0, getsockname($s));
for (1..4) { socket(my $c, PF_INET, SOCK_STREAM, 0); $c->blocking(0); connect($c, $to); push @c, $c } # the queue is full
sigaction(SIGALRM, POSIX::SigAction->new(sub { $n++ }, POSIX::SigSet->new, RESTART));
socket(my $c, PF_INET, SOCK_STREAM, 0);
ualarm(100_000, RESTART ? 0 : 100_000);
if (RESTART) { setsockopt($c, SOL_SOCKET, SO_SNDTIMEO, pack("l!l!", 1, 0)) }
my $r = connect($c, $to);
print $r ? "connected" : $!{EINTR} ? "EINTR" : $!{EINPROGRESS} ? "timeout" : $!, "\n";`
	for restart, want := range map[string]string{"0": "EINTR\n", "SA_RESTART": "timeout\n"} {
		t.Run(restart, func(t *testing.T) {
			cmd := p.shell(`exec perl -MIO::Handle -e "$script"`)
			cmd.Env = append(cmd.Env, "script="+strings.ReplaceAll(script, "RESTART", restart))
			if got := output(t, p.seal(t), cmd); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestSupervisorEnds: without a supervisor a connect fails.
func TestSupervisorEnds(t *testing.T) {
	p := newPlace(t)
	p.Rules.Network = true
	s := p.seal(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := testkit.Child(t, "dial", l.Addr().String())
	lines, in := piped(t, cmd)
	if err := s.Start(cmd); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in)
	expect(t, lines, "<nil>")
	s.run.network.close()
	fmt.Fprintln(in)
	expect(t, lines, "dial tcp "+l.Addr().String()+": connect: function not implemented")
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// dialEach connects once for each line of its input.
func dialEach(args []string) error {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(dial("tcp", args[0]))
	}
	return nil
}

// TestListenersEnd: of programs that have ended the listener of the idle thread is kept, until Close.
func TestListenersEnd(t *testing.T) {
	p := newPlace(t)
	s := p.seal(t)
	var starts sync.WaitGroup
	for range 3 {
		starts.Go(func() { output(t, s, p.shell("sleep 0.1")) })
	}
	starts.Wait()
	n := s.run.network
	listeners := func(want int) func() bool {
		return func() bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.listeners) == want
		}
	}
	waitFor(t, "one listener", listeners(1))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	waitFor(t, "no listener", listeners(0))
}

func piped(t *testing.T, cmd *exec.Cmd) (*bufio.Scanner, io.WriteCloser) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return bufio.NewScanner(out), in
}

func expect(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	if !lines.Scan() || lines.Text() != want {
		t.Fatalf("%q, want %q", lines.Text(), want)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 3000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no %s", what)
}

// measure is a program that does something as often as its argument says, and prints the nanoseconds that this took.
func measure(args []string) error {
	times, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	to, zero := addressOf(l.Addr().String()), [1]byte{}
	null, err := unix.Open(os.DevNull, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	do := map[string]func() error{
		"getpid": func() error { unix.Getpid(); return nil },
		"read":   func() error { _, err := unix.Read(null, zero[:]); return err },
		"connect": func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			defer unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}) // no TIME_WAIT
			return unix.Connect(fd, to)
		},
	}[args[0]]
	go func() {
		for {
			if conn, err := l.Accept(); err == nil {
				_ = conn.Close()
			}
		}
	}()
	began := time.Now()
	for range times {
		if err := do(); err != nil {
			return err
		}
	}
	fmt.Println(time.Since(began).Nanoseconds())
	return nil
}

// BenchmarkCalls compares system calls of a sealed program with those of another.
func BenchmarkCalls(b *testing.B) {
	for _, name := range []string{"getpid", "read", "connect"} {
		for kind, network := range map[string]string{"free": "", "sealed-none": "none", "sealed-any": "any"} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				p := newPlace(b)
				p.Rules.Network = network == "any"
				start := (*exec.Cmd).Start
				if network != "" {
					start = p.seal(b).Start
				}
				cmd := testkit.Child(b, "measure", name, strconv.Itoa(b.N))
				var out strings.Builder
				cmd.Stdout = &out
				if err := start(cmd); err != nil {
					b.Fatal(err)
				}
				if err := cmd.Wait(); err != nil {
					b.Fatal(err)
				}
				total, err := strconv.ParseFloat(strings.TrimSpace(out.String()), 64)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(total/float64(b.N), "ns/call")
			})
		}
	}
}
