package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// serving returns a socket whose server executes calls.
func serving(t testing.TB, execute func(context.Context, Request) int) (string, *Server) {
	t.Helper()
	dir, err := os.MkdirTemp("", "forward")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	s, err := Listen(path, execute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		_ = os.RemoveAll(dir)
	})
	return path, s
}

// echo copies standard input to standard output, and the call to standard error.
func echo(_ context.Context, r Request) int {
	_, err := io.Copy(r.Stdout, r.Stdin)
	_, _ = fmt.Fprintf(r.Stderr, "%q %q %v", r.Dir, r.Args, err)
	return len(r.Args)
}

func TestStreamsAndStatus(t *testing.T) {
	t.Parallel()
	path, _ := serving(t, echo)
	binary := bytes.Repeat([]byte("a\x00\xff\n"), 300_000)
	for _, tc := range []struct {
		in   []byte
		args []string
	}{{nil, nil}, {[]byte("x"), []string{""}}, {binary, []string{"a b", "\xff\xfe", "", "c\n"}}, {binary, slices.Repeat([]string{"long"}, 200)}} {
		var out, errOut bytes.Buffer
		status, err := Run(t.Context(), path, Call{"/some/dir", tc.args}, bytes.NewReader(tc.in), &out, &errOut)
		if err != nil || status != len(tc.args) {
			t.Errorf("%d, %v", status, err)
		}
		if !bytes.Equal(out.Bytes(), tc.in) || errOut.String() != fmt.Sprintf("%q %q %v", "/some/dir", slices.Concat([]string{}, tc.args), nil) {
			t.Errorf("%d bytes came back of %d; %.200s", out.Len(), len(tc.in), errOut.String())
		}
	}
}

func TestTooLongCall(t *testing.T) {
	t.Parallel()
	if _, err := Run(t.Context(), "/nonexistent", Call{"", []string{strings.Repeat("x", maxCall)}}, nil, nil, nil); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
}

// forbidden is an input that must not be read.
type forbidden struct{ t *testing.T }

func (f forbidden) Read([]byte) (int, error) {
	f.t.Error("standard input was read")
	return 0, io.EOF
}

func TestInputIsReadOnDemand(t *testing.T) {
	t.Parallel()
	path, _ := serving(t, func(_ context.Context, r Request) int {
		_, _ = io.WriteString(r.Stdout, "no need")
		return 0
	})
	var out bytes.Buffer
	if status, err := Run(t.Context(), path, Call{}, forbidden{t}, &out, nil); status != 0 || err != nil || out.String() != "no need" {
		t.Errorf("%d, %v, %q", status, err, out.String())
	}
}

// A reader who takes his time stops the command's writes, and not its reads.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	written := make(chan int, 100)
	path, _ := serving(t, func(_ context.Context, r Request) int {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 3 {
				_, _ = r.Stdout.Write(make([]byte, maxData))
				written <- i
			}
		}()
		line := make([]byte, 100)
		n, _ := r.Stdin.Read(line)
		_, _ = r.Stderr.Write(line[:n])
		<-done
		return 0
	})
	out, outEnd := io.Pipe()
	in, inEnd := io.Pipe()
	talk, talkEnd := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := Run(t.Context(), path, Call{}, in, outEnd, talkEnd)
		_ = outEnd.Close()
		ended <- err
	}()
	line := make([]byte, 100)
	go func() { _, _ = inEnd.Write([]byte("hello")) }()
	if n, err := talk.Read(line); string(line[:n]) != "hello" || err != nil {
		t.Errorf("%q, %v", line[:n], err)
	}
	select {
	case <-written:
		t.Error("a write has ended that nobody read")
	default:
	}
	if n, err := io.Copy(io.Discard, out); n != 3*maxData || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
func (f failing) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/full", Err: f.err}
}

// The errors of the client's streams are those of the command's.
func TestErrorsOfStreams(t *testing.T) {
	t.Parallel()
	got := make(chan error, 4)
	path, _ := serving(t, func(_ context.Context, r Request) int {
		_, err := r.Stdin.Read(make([]byte, 1))
		got <- err
		_, err = r.Stdout.Write([]byte("x"))
		got <- err
		_, err = r.Stdout.Write(nil)
		got <- err
		if !r.Stderr.(*Stream).Gone() {
			err = nil
		}
		got <- err
		return 3
	})
	if status, err := Run(t.Context(), path, Call{}, failing{syscall.EISDIR}, failing{syscall.ENOSPC}, failing{errors.New("odd")}); status != 3 || err != nil {
		t.Error(status, err)
	}
	for _, want := range []error{syscall.EISDIR, syscall.ENOSPC, syscall.ENOSPC, syscall.ENOSPC} {
		if err := <-got; err != want { //nolint:errorlint // as the system call returns it
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// A client that ends cancels its command, whatever that is doing.
func TestEndOfClient(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]func(r Request){
		"idle":  func(Request) {},
		"reads": func(r Request) { _, _ = r.Stdin.Read(make([]byte, 1)) },
		"writes": func(r Request) {
			for {
				if _, err := r.Stdout.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		},
	} {
		began, ended := make(chan struct{}), make(chan error)
		path, _ := serving(t, func(ctx context.Context, r Request) int {
			close(began)
			busy(r)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return 0
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		never, _ := io.Pipe()
		_, blocked := io.Pipe()
		result := make(chan error)
		go func() {
			_, err := Run(ctx, path, Call{}, never, blocked, nil)
			result <- err
		}()
		<-began
		cause := errors.New("enough")
		cancel(cause)
		if err := <-result; !errors.Is(err, cause) {
			t.Errorf("%s: the client: %v", name, err)
		}
		if err := <-ended; !errors.Is(err, errGone) {
			t.Errorf("%s: the command: %v", name, err)
		}
	}
}

// A server that is closed cancels the commands, waits for them and removes the socket; their clients have no status.
func TestEndOfServer(t *testing.T) {
	t.Parallel()
	began, cause := make(chan struct{}), error(nil)
	path, s := serving(t, func(ctx context.Context, r Request) int {
		close(began)
		_, _ = r.Stdin.Read(make([]byte, 1))
		<-ctx.Done()
		cause = context.Cause(ctx)
		return 0
	})
	var idle []net.Conn
	for range maxCalls + 10 { // more than are accepted
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if idle = append(idle, c); len(idle) == 1 {
			go func() {
				never, _ := io.Pipe()
				w := &wire{ReadWriteCloser: c}
				_ = w.send(call, Call{}.encode())
				_, _ = never.Read(nil)
			}()
			<-began
		}
	}
	s.Close()
	if !errors.Is(cause, errClosed) {
		t.Errorf("the command: %v", cause)
	}
	for _, c := range idle[1:] {
		if n, err := io.Copy(io.Discard, c); n != 0 && err == nil {
			t.Errorf("%d bytes", n)
		}
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket: %v", err)
	}
	if _, err := Run(t.Context(), path, Call{}, nil, nil, nil); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a client: %v", err)
	}
}

func TestManyClients(t *testing.T) {
	t.Parallel()
	path, _ := serving(t, echo)
	var all sync.WaitGroup
	for i := range 2 * maxCalls {
		all.Go(func() {
			in := strings.Repeat(fmt.Sprintf("%d\n", i), 20_000)
			var out, errOut bytes.Buffer
			if status, err := Run(t.Context(), path, Call{Args: []string{"x"}}, strings.NewReader(in), &out, &errOut); status != 1 || err != nil || out.String() != in {
				t.Errorf("%d: %d, %v, %d bytes", i, status, err, out.Len())
			}
		})
	}
	all.Wait()
}

func TestSocketIsPrivate(t *testing.T) {
	t.Parallel()
	path, _ := serving(t, echo)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Whatever a client sends, the command and the server end with the connection.
func FuzzServer(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{call, 0, 0, 0, 3, '/', 0, 'x'})
	f.Add([]byte{call, 0, 0, 0, 0, stdin, 0, 0, 0, 5, 0, 0, 0, 0, 'a', stdin, 0, 0, 0, 4, 0, 0, 0, 0, stdout, 0, 0, 0, 4, 0, 0, 0, 0})
	f.Add([]byte{call, 0, 0, 0, 0, stdin, 0, 0, 0, 4, 0, 0, 0, 21, stderr, 0, 0, 0, 0})
	f.Add([]byte{call, 0, 0, 0, 0, call, 0, 0, 0, 0})
	f.Add([]byte{call, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{exit, 0, 0, 0, 0})
	f.Fuzz(func(_ *testing.T, data []byte) {
		s := &Server{execute: echo, ctx: context.Background()}
		client, server := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		go func() {
			_, _ = client.Write(data)
			_ = client.Close()
		}()
		s.serve(server)
	})
}

// Whatever a server sends, the client ends with the connection, and without a frame of the exit status it has none.
func FuzzClient(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{stdout, 0, 0, 0, 1, 'x', stderr, 0, 0, 0, 0, stdin, 0, 0, 0, 4, 0, 0, 0, 9, exit, 0, 0, 0, 4, 0, 0, 0, 7})
	f.Add([]byte{exit, 0, 0, 0, 1, 0})
	f.Add([]byte{stdin, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff})
	dir := f.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	f.Fuzz(func(t *testing.T, data []byte) {
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			_, _ = conn.Write(data)
			_ = conn.(*net.UnixConn).CloseWrite()
		}()
		_, err := Run(t.Context(), l.Addr().String(), Call{}, strings.NewReader("input"), io.Discard, io.Discard)
		if err == nil && !bytes.Contains(data, []byte{exit}) {
			t.Error("a status out of nothing")
		}
	})
}
