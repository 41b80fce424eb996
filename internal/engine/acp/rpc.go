package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/ollim/ollim/internal/engine/command"
)

// Error codes of JSON-RPC and of the protocol.
const (
	noMethod     = -32601
	authRequired = -32000
)

// rpcError is the error that an agent answers a request with.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the message with the part of the data that says more. Agents put the service's own words there.
func (e *rpcError) Error() string {
	var data struct{ Message, Details string }
	if json.Unmarshal(e.Data, &data) != nil {
		_ = json.Unmarshal(e.Data, &data.Details) // data that is neither an object nor a text says nothing
	}
	text := e.Message
	for _, more := range []string{data.Message, data.Details} {
		if more != "" && more != e.Message {
			text += ": " + more
		}
	}
	return text
}

// message is a line of the protocol, in either direction.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// errEnded is the error of calls to an agent that has closed its output.
var errEnded = errors.New("the agent has ended")

// conn is a connection to an agent: JSON-RPC 2.0, a message on each line.
type conn struct {
	out io.Writer

	// heard is called for each notification and each request of the agent, in their order, before a later answer is returned. The
	// answer to a request may be sent later, by another goroutine.
	heard func(m message)

	writing sync.Mutex // held while a line is written, which waits for the agent to read

	mu      sync.Mutex
	last    int // id of the last request
	waiting map[int]chan message
	err     error        // why no further answer comes
	left    chan message // gets the answer to the last call that ctx has ended; nil: there is none
}

// listen reads messages until the agent closes its output or sends a line of more than command.MaxLine bytes. Lines that are not
// messages are ignored.
func (c *conn) listen(r io.Reader) {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > command.MaxLine {
			c.close(fmt.Errorf("the agent printed a line of more than %d bytes", command.MaxLine))
			return
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		var m message
		if len(bytes.TrimSpace(line)) > 0 && json.Unmarshal(line, &m) == nil {
			c.take(m)
		}
		line = line[:0]
		if err != nil {
			c.close(errEnded)
			return
		}
	}
}

func (c *conn) take(m message) {
	if m.Method != "" {
		c.heard(m)
		return
	}
	var id int
	if json.Unmarshal(m.ID, &id) != nil {
		return // an answer to nothing
	}
	c.mu.Lock()
	answer := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if answer != nil {
		answer <- m
	}
}

// close ends all calls with an error. Only the first one counts.
func (c *conn) close(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	for id, answer := range c.waiting {
		close(answer)
		delete(c.waiting, id)
	}
}

// call sends a request and decodes its result into v, which may be nil. The error is a *rpcError if the agent answers with one.
func (c *conn) call(ctx context.Context, method string, params, v any) error {
	answer := make(chan message, 1)
	c.mu.Lock()
	err := c.err
	if err == nil {
		c.last++
		c.waiting[c.last] = answer
	}
	id := c.last
	c.mu.Unlock()
	if err != nil {
		return err
	}
	raw, _ := json.Marshal(id) // a number can always be encoded
	if err := c.send(message{ID: raw, Method: method}, params); err != nil {
		return err
	}
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.err
		case m.Error != nil:
			return m.Error
		case v == nil || len(m.Result) == 0:
			return nil
		}
		if err := json.Unmarshal(m.Result, v); err != nil {
			return fmt.Errorf("%s: the agent's answer is not of the protocol: %w", method, err)
		}
		return nil
	case <-ctx.Done():
		c.left = answer
		return context.Cause(ctx)
	}
}

// settle waits for the answer to the last call, which ctx has ended, or for the end of the agent.
func (c *conn) settle(ctx context.Context) {
	if c.left == nil {
		return
	}
	select {
	case <-c.left:
	case <-ctx.Done():
	}
}

// notify sends a notification.
func (c *conn) notify(method string, params any) error {
	return c.send(message{Method: method}, params)
}

// answer answers a request of the agent.
func (c *conn) answer(id json.RawMessage, result any) error {
	raw, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return c.send(message{ID: id, Result: raw}, nil)
}

// refuse answers a request whose method is not offered.
func (c *conn) refuse(m message) error {
	return c.send(message{ID: m.ID, Error: &rpcError{Code: noMethod, Message: "method not found: " + m.Method}}, nil)
}

func (c *conn) send(m message, params any) error {
	m.Version = "2.0"
	if params != nil {
		raw, err := json.Marshal(params)
		if err != nil {
			return err
		}
		m.Params = raw
	}
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err = c.out.Write(append(line, '\n')); err != nil {
		return errEnded
	}
	return nil
}
