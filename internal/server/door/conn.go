package door

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// errLost is the error of a request whose door has ended before it answered.
var errLost = errors.New("the door ended before it answered")

// errSilent is the error of a request that the door does not answer.
var errSilent = errors.New("the door does not answer")

// Limits of a connection.
const (
	helloTime  = time.Minute      // until the first line
	answerTime = time.Minute      // until the answer to a request
	fileTime   = 10 * time.Minute // the same, with files
)

// conn is a connection with a door. It ends when the door ends its output.
type conn struct {
	in    *outgoing
	out   *bufio.Reader
	lines int // read so far

	mu      sync.Mutex
	ref     uint64
	pending map[uint64]chan answer // nil: the connection has ended
}

// answer is what a request came to.
type answer struct {
	done Done
	err  error
}

func newConn(in io.Writer, out io.Reader) *conn {
	return &conn{in: newOutgoing(in), out: bufio.NewReaderSize(out, 64<<10), pending: map[uint64]chan answer{}}
}

// line is a line of a door.
type line struct {
	number int
	kind   string // its type
	data   []byte
}

// fault is the error of a faulty line, which costs that line only.
type fault struct {
	line int
	err  error
}

func (f *fault) Error() string { return fmt.Sprintf("line %d: %v", f.line, f.err) }

func (f *fault) Unwrap() error { return f.err }

// read returns the next line. Its error is a *fault, or says that there are no more.
func (c *conn) read() (l line, err error) {
	c.lines++
	l.number = c.lines
	long := false
	for {
		part, err := c.out.ReadSlice('\n')
		if long = long || len(l.data)+len(part) > MaxLine; long {
			l.data = nil
		} else {
			l.data = append(l.data, part...)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) { // what is left has no end, so it may be a part of a line
			return line{}, err
		}
	}
	if long {
		return line{}, &fault{l.number, fmt.Errorf("it has more than %d bytes", MaxLine)}
	}
	about, err := decode[struct {
		Type string `json:"type"`
	}](l.data)
	if err != nil {
		return line{}, &fault{l.number, notJSON(err)}
	}
	l.kind = about.Type
	return l, nil
}

// notJSON returns the error of a line that is no JSON without the characters that it quotes.
func notJSON(err error) error {
	if wrong := (*json.SyntaxError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("no JSON after byte %d", wrong.Offset)
	}
	return err
}

// hello writes the first line and reads that of the door.
func (c *conn) hello(s Start) (h Hello, err error) {
	s.Type, s.Version = TypeStart, Version
	if err := c.in.put(s); err != nil {
		return h, err
	}
	l, err := c.read()
	switch {
	case errors.Is(err, io.EOF):
		return h, errors.New("it ended before it said hello")
	case err != nil:
		return h, err
	case l.kind != TypeHello:
		return h, &fault{l.number, fmt.Errorf("type: want %s first", TypeHello)}
	}
	h, err = decode[Hello](l.data)
	if err == nil {
		_, err = h.Messenger()
	}
	if err != nil {
		return h, &fault{l.number, err}
	}
	return h, nil
}

// serve reads lines until there are no more, answers requests, and gives the others to handle. It calls wrong with the error of each
// faulty line.
func (c *conn) serve(handle func(line) error, wrong func(error)) {
	defer c.end()
	for {
		l, err := c.read()
		faulty := (*fault)(nil)
		switch {
		case errors.As(err, &faulty):
			wrong(err)
			continue
		case err != nil:
			return
		}
		switch l.kind {
		case TypeDone:
			err = c.settle(l, func() (uint64, answer, error) {
				d, err := decode[Done](l.data)
				return d.Ref, answer{done: d}, err
			})
		case TypeFailed:
			err = c.settle(l, func() (uint64, answer, error) {
				f, err := decode[Failed](l.data)
				return f.Ref, answer{err: f.Err()}, err
			})
		default:
			err = handle(l)
		}
		if err != nil {
			wrong(&fault{l.number, err})
		}
	}
}

// settle answers the request of a line. A request that nobody waits for is ignored. One whose answer is faulty fails, and may be repeated.
func (c *conn) settle(l line, decoded func() (uint64, answer, error)) error {
	ref, a, err := decoded()
	if err != nil {
		about, _ := decode[struct {
			Ref uint64 `json:"ref"`
		}](l.data)
		ref, a = about.Ref, answer{err: fmt.Errorf("the door's answer in line %d: %w", l.number, err)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if waiting := c.pending[ref]; waiting != nil {
		delete(c.pending, ref)
		waiting <- a
	}
	return err
}

// end fails the requests that are not answered.
func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, waiting := range c.pending {
		waiting <- answer{err: errLost}
	}
	c.pending = nil
	c.in.end()
}

// ask makes a request and waits for its answer.
func (c *conn) ask(ctx context.Context, r Request) (Done, error) {
	limit := answerTime
	if len(r.Files) > 0 || r.Type == TypeFetch {
		limit = fileTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: no end of %s within %s", errSilent, r.Type, limit))
	defer cancel()
	waiting := make(chan answer, 1)
	c.mu.Lock()
	if c.pending == nil {
		c.mu.Unlock()
		return Done{}, errLost
	}
	c.ref++
	r.Ref = c.ref
	c.pending[r.Ref] = waiting
	c.mu.Unlock()
	if err := c.in.put(r); err != nil {
		return Done{}, err
	}
	select {
	case a := <-waiting:
		return a.done, a.err
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pending, r.Ref)
		return Done{}, context.Cause(ctx)
	}
}

// outgoing writes lines to a door in order, without waiting for the door to read: a door that writes before it reads would otherwise
// wait for us as we wait for it.
type outgoing struct {
	mu     sync.Mutex
	more   *sync.Cond
	queue  [][]byte
	ended  bool
	closed chan struct{} // after the last line
}

func newOutgoing(w io.Writer) *outgoing {
	o := &outgoing{closed: make(chan struct{})}
	o.more = sync.NewCond(&o.mu)
	go o.write(w)
	return o
}

func (o *outgoing) write(w io.Writer) {
	defer close(o.closed)
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && !o.ended {
			o.more.Wait()
		}
		if len(o.queue) == 0 {
			o.mu.Unlock()
			return
		}
		next := o.queue[0]
		o.queue = o.queue[1:]
		o.mu.Unlock()
		if _, err := w.Write(next); err != nil { // the door has ended, which its output tells
			o.end()
			o.drop()
		}
	}
}

// put writes a line soon. The error says that the line is too long, and is a *messenger.Permanent.
func (o *outgoing) put(what any) error {
	text, err := json.Marshal(what)
	if err == nil && len(text) >= MaxLine {
		err = tooLong()
	}
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.queue = append(o.queue, append(text, '\n'))
		o.more.Signal()
	}
	return nil
}

// end lets nothing be written after what waits.
func (o *outgoing) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.more.Signal()
}

// drop forgets what waits.
func (o *outgoing) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = nil
}
