package seal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Proxy lets programs that may connect nowhere else reach some hosts by name, which they cannot resolve themselves. It serves the method
// CONNECT of HTTP on a port of this machine. Programs get its address in HTTPS_PROXY, and the rules have it in Connect.
type Proxy struct {
	listener net.Listener
	allowed  []string
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	cancel   context.CancelFunc
	serving  sync.WaitGroup
}

const (
	proxyPatience = 30 * time.Second // time to connect to a host, and for a program to send its request
	proxyRequest  = 16 << 10         // largest request, in bytes
	proxyAtOnce   = 256              // connections at once; others wait
)

// NewProxy serves connections to the HOST:PORT entries of allowed, as programs write them, until Close. dial is the DialContext of a
// net.Dialer, or a function that connects through another proxy.
func NewProxy(allowed []string, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*Proxy, error) {
	ctx, cancel := context.WithCancel(context.Background())
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		cancel()
		return nil, err
	}
	p := &Proxy{listener: l, allowed: allowed, dial: dial, cancel: cancel}
	p.serving.Go(func() { p.accept(ctx) })
	return p, nil
}

func (p *Proxy) accept(ctx context.Context) {
	slots := make(chan struct{}, proxyAtOnce)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			<-slots
			time.Sleep(10 * time.Millisecond) // wait: the process may have no free descriptor
			continue
		}
		p.serving.Go(func() {
			defer func() { <-slots }()
			p.serve(ctx, conn)
		})
	}
}

// Addr returns the HOST:PORT of the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close ends all connections.
func (p *Proxy) Close() error {
	p.cancel()
	err := p.listener.Close()
	p.serving.Wait()
	return err
}

func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = client.Close() })
	slow := time.AfterFunc(proxyPatience, cancel)
	bounded := &io.LimitedReader{R: client, N: proxyRequest}
	from := bufio.NewReader(bounded)
	request, err := http.ReadRequest(from)
	bounded.N = math.MaxInt64
	if err != nil {
		return
	}
	if request.Method != http.MethodConnect || !slices.Contains(p.allowed, request.Host) {
		_, _ = fmt.Fprintf(client, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
		return
	}
	host, err := p.dial(ctx, "tcp", request.Host)
	if err != nil {
		_, _ = fmt.Fprintf(client, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
		return
	}
	context.AfterFunc(ctx, func() { _ = host.Close() })
	if !slow.Stop() {
		return
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { pass(host, from) })
	both.Go(func() { pass(client, host) })
	both.Wait()
}

// pass copies one direction to its end, and then signals the end to the other side.
func pass(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		err = errors.Join(err, half.CloseWrite())
	}
	if err != nil {
		_ = to.Close() // so that the other direction ends as well
	}
}
