package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// The opcodes of the gateway.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

const (
	leave   = 4900 // the code of every close: neither 1000 nor 1001, nor one that Discord uses
	longest = 4096 // bytes of a payload to the gateway
)

// conn is one connection. All writes, and all decisions, are those of serve's goroutine.
type conn struct {
	*run
	ws     *websocket.Conn
	frames chan frame
	done   chan struct{} // closed at the end

	due      *time.Timer   // of the next heartbeat
	interval time.Duration // 0 before HELLO
	patience *time.Timer   // until the session works
	working  bool          // READY or RESUMED has come

	unacked bool // the last heartbeat is not acknowledged
	asked   int  // heartbeats that the server asked for since the last regular one
	held    heldBack
}

// heldBack is the event that waits for a place in the queue. Nothing is read meanwhile.
type heldBack struct {
	item
	is    bool
	since bool // the last regular heartbeat: its acknowledgement may be unread
}

// frame is one payload of the gateway, or the error that ended reading.
type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int             `json:"s"`
	Type string          `json:"t"`
	err  error
}

func newConn(r *run, ws *websocket.Conn) *conn {
	c := &conn{run: r, ws: ws, frames: make(chan frame), done: make(chan struct{})}
	c.due, c.patience = time.NewTimer(r.Patience), time.NewTimer(r.Patience)
	c.due.Stop()
	ws.SetCloseHandler(func(int, string) error { return nil }) // the library would repeat the server's code, which may be 1000
	return c
}

// serve works until the connection ends, and returns why.
func (c *conn) serve(ctx context.Context) error {
	var reader sync.WaitGroup
	reader.Go(c.read)
	err := c.work(ctx)
	_ = c.write(websocket.CloseMessage, websocket.FormatCloseMessage(leave, ""))
	close(c.done)
	_ = c.ws.Close()
	c.due.Stop()
	c.patience.Stop()
	reader.Wait()
	return err
}

func (c *conn) read() {
	for {
		var f frame
		_, data, err := c.ws.ReadMessage()
		if err == nil {
			err = json.Unmarshal(data, &f)
		}
		f.err = err
		select {
		case c.frames <- f:
		case <-c.done:
			return
		}
		if err != nil {
			return
		}
	}
}

func (c *conn) work(ctx context.Context) error {
	for {
		in, out := c.frames, chan<- item(nil)
		if c.held.is {
			in, out = nil, c.queue
		}
		var err error
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case f := <-in:
			err = c.take(f)
		case out <- c.held.item:
			c.queued(c.held.item)
		case <-c.due.C:
			err = c.regular()
		case <-c.patience.C:
			err = errSilent
		}
		if err != nil {
			return err
		}
	}
}

func (c *conn) take(f frame) error {
	if f.err != nil {
		return fmt.Errorf("read from the gateway: %w", f.err)
	}
	switch f.Op {
	case opDispatch:
		return c.dispatch(f)
	case opHeartbeat:
		if c.asked++; c.asked > int(max(1, c.interval/time.Second)) { // with the regular ones, half of what Discord allows
			return nil
		}
		return c.heartbeat()
	case opReconnect:
		return errReconnect
	case opInvalid:
		return c.invalid(string(f.Data) == "true")
	case opHello:
		return c.hello(f.Data)
	case opAck:
		c.acknowledged()
	}
	return nil
}

func (c *conn) hello(data []byte) error {
	var d struct {
		Interval int `json:"heartbeat_interval"` // milliseconds
	}
	if err := json.Unmarshal(data, &d); err != nil || d.Interval <= 0 {
		return fmt.Errorf("the gateway's HELLO is %.100q", data)
	}
	if c.interval != 0 {
		return errors.New("the gateway says HELLO twice")
	}
	c.interval = time.Duration(d.Interval) * time.Millisecond
	c.due.Reset(time.Duration(c.Random() * float64(c.interval)))
	c.patience.Reset(c.Patience)
	if c.session.id != "" {
		c.unanswered++
		return c.send(opResume, map[string]any{"token": c.Token, "session_id": c.session.id, "seq": c.seq})
	}
	c.count()
	return c.send(opIdentify, map[string]any{
		"token": c.Token, "intents": c.Intents, "properties": map[string]string{"os": runtime.GOOS, "browser": "ollim", "device": "ollim"},
	})
}

// invalid is Discord's answer to a session that it does not know, or cannot continue now. Both end the connection, and Discord asks
// for a random wait of 1 s to 5 s.
func (c *conn) invalid(resumable bool) error {
	err := errForgotten
	if resumable {
		err = errors.New("the session cannot be resumed yet")
	}
	return later{err, time.Second + time.Duration(c.Random()*float64(4*time.Second))}
}

func (c *conn) dispatch(f frame) error {
	again := f.Seq <= c.seq // Discord has sent it before
	switch f.Type {
	case "READY":
		var d struct {
			ID     string `json:"session_id"`
			Resume string `json:"resume_gateway_url"`
		}
		if err := json.Unmarshal(f.Data, &d); err != nil || d.ID == "" {
			return errors.New("the gateway's READY has no session")
		}
		if d.ID != c.session.id {
			c.session, c.seq, again = session{d.ID, d.Resume}, 0, false // whatever the number of READY, which may be 0
		}
		c.ready()
	case "RESUMED":
		c.ready()
	default:
		if !c.working { // events that were missed
			c.patience.Reset(c.Patience)
		}
	}
	if again {
		return nil
	}
	i := item{Event{f.Type, f.Data, f.Seq}, c.session}
	select {
	case c.queue <- i:
		c.queued(i)
	default:
		c.held = heldBack{i, true, true}
		c.patience.Stop()
	}
	return nil
}

func (c *conn) ready() {
	c.working, c.missed, c.unanswered = true, 0, 0
	c.patience.Stop()
}

// queued notes that an event is in the queue: a resume goes on after it.
func (c *conn) queued(i item) {
	c.seq = i.Seq
	if c.held.is && !c.working {
		c.patience.Reset(c.Patience)
	}
	c.held.is = false
}

// regular sends a heartbeat when it is due, if the last one was acknowledged.
func (c *conn) regular() error {
	if c.unacked && !c.held.since {
		return errZombie
	}
	c.held.since, c.asked = c.held.is, 0
	c.due.Reset(c.interval)
	return c.heartbeat()
}

func (c *conn) heartbeat() error {
	c.unacked = true
	if c.seq == 0 {
		return c.send(opHeartbeat, nil)
	}
	return c.send(opHeartbeat, c.seq)
}

// acknowledged notes that the server is alive. Only then has the connection held, and the next failure is a first one.
func (c *conn) acknowledged() {
	c.unacked = false
	if c.working {
		c.failed = 0
		c.Beat()
	}
}

func (c *conn) send(op int, d any) error {
	data, err := json.Marshal(map[string]any{"op": op, "d": d})
	if err != nil {
		return err
	}
	if len(data) > longest {
		return fmt.Errorf("a payload of %d bytes is longer than the gateway takes", len(data))
	}
	return c.write(websocket.TextMessage, data)
}

// write gives up after a second: the payloads are so small that a write waits only if the peer has not read for long. It sets no
// deadline, because a deadline is a time of day.
func (c *conn) write(kind int, data []byte) error {
	stuck := time.AfterFunc(time.Second, func() { _ = c.ws.NetConn().Close() })
	defer stuck.Stop()
	if err := c.ws.WriteMessage(kind, data); err != nil {
		return fmt.Errorf("write to the gateway: %w", err)
	}
	return nil
}
