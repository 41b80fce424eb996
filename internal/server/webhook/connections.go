package webhook

import (
	"container/list"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// connections bounds the open connections, and the memory of requests that are still arriving. At a limit the connection that has
// kept the server waiting longest for the rest of a request is closed: a request that arrives without delay is never in its way.
type connections struct {
	most      int   // open at once
	mostBytes int64 // of bodies in memory

	mu      sync.Mutex
	open    int
	fresh   int // of open: those without a request so far
	bytes   int64
	waiting list.List // of *connection, longest first: idle, or with a request that has not arrived completely
}

// connection is one of connections. Its fields belong to the lock of all.
type connection struct {
	net.Conn

	all   *connections
	place *list.Element // in waiting; nil: a complete request is being answered, or it is closed
	bytes int64         // of the body of the request at hand
	used  bool          // it had a request
	gone  bool
	whole bool // the body of the request at hand has been read; only for its handler
}

// listener makes the connections of a listener those of all.
type listener struct {
	net.Listener
	all *connections
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.all.add(c), nil
}

func (all *connections) add(c net.Conn) *connection {
	all.mu.Lock()
	defer all.mu.Unlock()
	one := &connection{Conn: c, all: all}
	all.fresh++
	if all.open++; all.open > all.most {
		all.closeOldest(func(*connection) bool { return true })
	}
	one.place = all.waiting.PushBack(one)
	return one
}

// closeOldest closes the connection that has waited longest of those that fit, and reports whether there is one.
func (all *connections) closeOldest(fits func(*connection) bool) bool {
	for e := all.waiting.Front(); e != nil; e = e.Next() {
		if c, _ := e.Value.(*connection); fits(c) {
			all.remove(c)
			_ = c.Close() // what reads from it gets an error
			return true
		}
	}
	return false
}

// remove forgets a connection. A second call does nothing.
func (all *connections) remove(c *connection) {
	if c.gone {
		return
	}
	c.gone = true
	all.open--
	all.use(c)
	all.settle(c)
}

// use notes that a connection has, or will have, no first request to wait for.
func (all *connections) use(c *connection) {
	if !c.used {
		c.used = true
		all.fresh--
	}
}

// settle makes a connection one that is not waited for, and that holds no memory.
func (all *connections) settle(c *connection) {
	if c.place != nil {
		all.waiting.Remove(c.place)
		c.place = nil
	}
	all.bytes -= c.bytes
	c.bytes = 0
}

// changed is the server's http.Server.ConnState.
func (all *connections) changed(conn net.Conn, state http.ConnState) {
	c, _ := conn.(*connection)
	all.mu.Lock()
	defer all.mu.Unlock()
	switch state {
	case http.StateIdle: // answered: the next request is waited for
		if all.settle(c); !c.gone {
			c.place = all.waiting.PushBack(c)
		}
	case http.StateClosed, http.StateHijacked:
		all.remove(c)
	}
}

// begin notes that a connection has a request that is being handled.
func (c *connection) begin() {
	c.whole = false
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.use(c)
}

// awaitFirst waits until every connection has had a request: http.Server.Shutdown does not answer those that are arriving.
func (all *connections) awaitFirst(ctx context.Context, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for all.news() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// pause is how often awaitFirst looks.
const pause = 5 * time.Millisecond

func (all *connections) news() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.fresh
}

var (
	errTooLarge = errors.New("too large")
	errNoMemory = errors.New("the bodies of other requests fill the memory that the server uses")
)

// firstRead is the memory for a body before more of it has arrived, in bytes.
const firstRead = 64 << 10

// read returns the whole body of the request at hand, which is then complete. Memory is taken only for what has arrived.
func (c *connection) read(r *http.Request, most int64) ([]byte, error) {
	if r.ContentLength > most {
		return nil, errTooLarge
	}
	size := r.ContentLength + 1 // one more, to see the end
	if r.ContentLength < 0 || size > firstRead {
		size = firstRead
	}
	body := make([]byte, 0, size)
	for {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case int64(len(body)) > most:
			return nil, errTooLarge
		case !c.hold(int64(len(body)), err != nil):
			return nil, errNoMemory
		case err != nil: // the end
			c.whole = true
			return body, nil //nolint:nilerr // see the first case
		case len(body) == cap(body):
			body = slices.Grow(body, len(body))
		}
	}
}

// hold counts the bytes of the request at hand, and reports whether they may stay in memory. A complete request is no longer waited
// for.
func (c *connection) hold(bytes int64, complete bool) bool {
	all := c.all
	all.mu.Lock()
	defer all.mu.Unlock()
	if c.gone {
		return false
	}
	all.bytes += bytes - c.bytes
	c.bytes = bytes
	for all.bytes > all.mostBytes {
		if !all.closeOldest(func(other *connection) bool { return other != c && other.bytes > 0 }) {
			all.settle(c)
			return false
		}
	}
	if complete && c.place != nil {
		all.waiting.Remove(c.place)
		c.place = nil
	}
	return true
}
