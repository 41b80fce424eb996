package discordapi

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// memory is a network within the process. What waits for it waits durably in the sense of testing/synctest, so its time may be that of
// a bubble.
type memory struct {
	dialed chan net.Conn
	done   chan struct{}
	once   sync.Once
}

// Accept returns the server's end of the next connection.
func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.dialed:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and refuses new connections.
func (m *memory) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

// Addr is an address that nothing listens on.
func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// dial connects to the server, whatever the address is.
func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case m.dialed <- there:
		return here, nil
	case <-m.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Transport makes requests to a server with Options.Memory. Its connections end with the test.
func (s *Server) Transport() http.RoundTripper {
	t := &http.Transport{DialContext: s.memory.dial}
	s.t.Cleanup(t.CloseIdleConnections)
	return t
}
