package forward

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Request is a call with the streams of its client.
type Request struct {
	Call

	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Limits of a server.
const (
	maxCalls     = 128              // how many calls are executed at once; others wait
	callPatience = 10 * time.Second // how long the frame with the call may take
)

// Server executes the calls of clients.
type Server struct {
	listener *net.UnixListener
	execute  func(context.Context, Request) int
	ctx      context.Context
	end      context.CancelCauseFunc
	calls    sync.WaitGroup
	accepted chan struct{} // closed when no more connections are accepted
}

var (
	errClosed = errors.New("the server has been closed")
	errGone   = errors.New("the client has ended")
)

// Listen makes a socket that only this user may use, at a path of at most about 100 bytes, and executes each client's call on a
// goroutine. The context of a call ends when the client goes away or the server is closed. execute returns the exit status, 0 to 255.
func Listen(path string, execute func(context.Context, Request) int) (*Server, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s := &Server{listener: l, execute: execute, accepted: make(chan struct{})}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	go s.accept()
	return s, nil
}

// Close removes the socket, cancels the calls, closes their connections and waits until they have ended.
func (s *Server) Close() {
	s.end(errClosed)
	_ = s.listener.Close()
	<-s.accepted
	s.calls.Wait()
}

func (s *Server) accept() {
	defer close(s.accepted)
	slots := make(chan struct{}, maxCalls)
	for {
		select {
		case slots <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			<-slots
			time.Sleep(10 * time.Millisecond) // wait: the process may have no free descriptor
			continue
		}
		s.calls.Go(func() {
			defer func() { <-slots }()
			if sameUser(conn) {
				s.serve(conn)
			}
			_ = conn.Close()
		})
	}
}

// serve executes the call of one connection.
func (s *Server) serve(conn io.ReadWriteCloser) {
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(s.ctx, func() { _ = conn.Close() })()
	w := &wire{ReadWriteCloser: conn}
	late := time.AfterFunc(callPatience, func() { _ = conn.Close() })
	kind, data, err := w.receive(maxCall)
	if !late.Stop() || err != nil || kind != call {
		return
	}
	ctx, gone := context.WithCancelCause(s.ctx)
	defer gone(nil)
	var all [streams]*Stream
	for i := range all {
		all[i] = &Stream{wire: w, ctx: ctx, kind: byte(i), answers: make(chan []byte, 1)}
	}
	received := make(chan struct{})
	go func() {
		defer close(received)
		dispatch(w, all)
		gone(cmp.Or(context.Cause(s.ctx), errGone)) // closing the server also closes the connection
	}()
	status := s.execute(ctx, Request{decode(data), all[stdin], all[stdout], all[stderr]})
	_ = w.send(exit, encodeNumber(status))
	_ = conn.Close()
	<-received
}

// dispatch passes the client's answers to the streams. It returns when the connection ends or sends something that is not an answer.
func dispatch(w *wire, all [streams]*Stream) {
	for {
		kind, data, err := w.receive(number + maxData)
		if err != nil || kind >= streams {
			return
		}
		select {
		case all[kind].answers <- data:
		default:
			return
		}
	}
}

// Stream is one of the client's streams.
type Stream struct {
	wire    *wire
	ctx     context.Context
	kind    byte
	asking  sync.Mutex
	answers chan []byte
}

// ask sends a question and waits for the answer.
func (s *Stream) ask(question []byte) ([]byte, error) {
	if err := s.wire.send(s.kind, question); err != nil {
		return nil, syscall.EPIPE
	}
	select {
	case answer := <-s.answers:
		errno, data, ok := cutNumber(answer)
		switch {
		case !ok:
			return nil, syscall.EPROTO
		case errno != 0:
			return nil, syscall.Errno(errno)
		}
		return data, nil
	case <-s.ctx.Done():
		return nil, syscall.EPIPE
	}
}

// Read reads the client's standard input.
func (s *Stream) Read(p []byte) (int, error) {
	s.asking.Lock()
	defer s.asking.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	data, err := s.ask(encodeNumber(min(len(p), maxData)))
	switch {
	case err != nil:
		return 0, err
	case len(data) == 0:
		return 0, io.EOF
	case len(data) > len(p):
		return 0, syscall.EPROTO
	}
	return copy(p, data), nil
}

// Write returns when the client has written p, or with its error.
func (s *Stream) Write(p []byte) (n int, err error) {
	s.asking.Lock()
	defer s.asking.Unlock()
	for {
		part := p[n:min(len(p), n+maxData)]
		if _, err := s.ask(part); err != nil {
			return n, err
		}
		if n += len(part); n == len(p) {
			return n, nil
		}
	}
}

// Gone reports whether the reader of the client's output is gone.
func (s *Stream) Gone() bool {
	_, err := s.Write(nil)
	return err != nil
}
