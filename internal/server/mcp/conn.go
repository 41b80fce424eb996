package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// conn is one client on two streams. mcp-go has this too (StdioServer), with these defects in v0.49: the end of the input
// does not cancel a call but waits for it without limit, a last line without a newline is lost, and all servers of a
// process share one session.
//
// One goroutine reads lines, only one writes, so that output is not interleaved, and one runs each call.
type conn struct {
	handle  func(context.Context, json.RawMessage) mcp.JSONRPCMessage
	warn    func(string)
	answers chan []byte   // closed when all have been passed to the writer
	quit    chan struct{} // closed when the rest must not be written, because calls are abandoned

	calls   sync.WaitGroup
	mu      sync.Mutex
	running map[string]context.CancelCauseFunc // by id, as the request spells it
}

const (
	patience = time.Second // of each step of the end
	maxLine  = 32 << 20    // bytes of a message: the limit of the API through which a model's arguments come
)

// errWithdrawn is the cause with which a call's context ends when the client cancels it.
var errWithdrawn = errors.New("cancelled by the client")

func (c *conn) serve(parent context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancelCause(parent)
	defer stop(nil)
	lines := make(chan []byte)
	var readErr error // valid once lines is closed
	go func() {
		defer close(lines)
		readErr = read(ctx, in, lines)
	}()
	written := make(chan error, 1)
	go func() { written <- c.write(out, stop) }()

	err := c.dispatch(ctx, lines)
	if err == nil {
		err = readErr
		c.wait(ctx)
	}
	stop(nil)
	if failed := c.finish(written); failed != nil {
		err = failed
	}
	if parent.Err() != nil {
		return parent.Err()
	}
	return err
}

// read sends the lines of in, including a last one without a newline.
func read(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		select {
		case lines <- slices.Clone(scanner.Bytes()):
		case <-ctx.Done():
			return nil
		}
	}
	if errors.Is(scanner.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("reading from the client: a message of more than %d bytes", maxLine)
	}
	if scanner.Err() != nil {
		return fmt.Errorf("reading from the client: %w", scanner.Err())
	}
	return nil
}

// dispatch handles lines until there are no more, which is nil, or ctx ends, which is its cause.
func (c *conn) dispatch(ctx context.Context, lines <-chan []byte) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case line, open := <-lines:
			if !open {
				return nil
			}
			c.take(ctx, line)
		}
	}
}

// take answers a line, or starts to. Only calls run concurrently: a client that sends "initialize" and "tools/list" at
// once gets the answers in that order.
func (c *conn) take(ctx context.Context, line []byte) {
	m := parse(line)
	switch m.Method {
	case "tools/call":
		// Record the call before the next line is read. mcp-go records it when it runs, and would miss a cancellation
		// that follows at once.
		ctx, cancel := context.WithCancelCause(withArguments(ctx, m))
		c.begin(m, cancel)
		c.calls.Go(func() {
			defer cancel(nil)
			answer := c.answer(ctx, m, line)
			c.end(m)
			if !errors.Is(context.Cause(ctx), errWithdrawn) {
				c.send(answer, c.quit)
			}
		})
	case "notifications/cancelled":
		c.withdraw(m)
	default:
		c.send(c.answer(ctx, m, line), ctx.Done())
	}
}

func (c *conn) begin(m message, cancel context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		c.running = map[string]context.CancelCauseFunc{}
	}
	c.running[string(m.ID)] = cancel
}

func (c *conn) end(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, string(m.ID))
}

func (c *conn) withdraw(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.running[string(m.params().RequestID)]; ok {
		cancel(errWithdrawn)
	}
}

// send passes an answer to the writer; nil is ignored.
func (c *conn) send(answer []byte, until <-chan struct{}) {
	if answer == nil {
		return
	}
	select {
	case c.answers <- answer:
	case <-until:
	}
}

// write is the only writer of out. If out fails, it stops everything else, and drains what still arrives so that no
// sender blocks.
func (c *conn) write(out io.Writer, stop context.CancelCauseFunc) (failed error) {
	for {
		select {
		case <-c.quit:
			return failed
		case answer, open := <-c.answers:
			if !open {
				return failed
			}
			if failed != nil || closed(c.quit) {
				continue
			}
			if _, err := out.Write(append(answer, '\n')); err != nil {
				failed = fmt.Errorf("writing to the client: %w", err)
				stop(failed)
			}
		}
	}
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// wait reports whether all calls ended, and their answers were taken, in time.
func (c *conn) wait(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	idle := make(chan struct{})
	go func() {
		c.calls.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return closed(idle)
	}
}

// finish waits for cancelled calls and for the writer, for a bounded time: a tool may ignore the cancellation, and a
// client may not read.
func (c *conn) finish(written <-chan error) error {
	if c.wait(context.Background()) {
		close(c.answers)
	} else {
		c.warn("tool calls did not end when cancelled, and were abandoned")
		close(c.quit)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case err := <-written:
		return err
	case <-late.C:
		return errors.New("writing to the client: it does not read")
	}
}
