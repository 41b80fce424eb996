// Package proxy is an HTTP proxy that connects to listed hosts only. It is for a program that may connect to nothing else (see
// seal.Rules): the proxy resolves names, so a list of names holds, although the kernel sees addresses only.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Limits of a proxy. The program that it serves must not exhaust this process.
const (
	dialTime   = 30 * time.Second
	headerTime = time.Minute
	mostOpen   = 256 // requests and tunnels at once
	mostNamed  = 100 // hosts of which refused is told
)

// Proxy is a proxy. It listens until Close is called.
type Proxy struct {
	hosts   []Host
	refused func(host string)
	address netip.AddrPort
	server  *http.Server
	forward *httputil.ReverseProxy
	places  chan struct{} // one for each request and tunnel
	serving sync.WaitGroup
	ended   context.Context // ends the tunnels
	end     func()

	mu    sync.Mutex
	named map[string]bool // of refused
}

// Listen returns a proxy on a port of 127.0.0.1. refused is called with HOST:PORT of what the program may not reach, once for each; it may
// be called by several goroutines at once.
func Listen(hosts []Host, refused func(host string)) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{hosts: hosts, refused: refused, places: make(chan struct{}, mostOpen), named: map[string]bool{}}
	p.ended, p.end = context.WithCancel(context.Background())
	p.address, err = netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	silent := log.New(io.Discard, "", 0)
	p.forward = &httputil.ReverseProxy{
		Rewrite:   func(*httputil.ProxyRequest) {}, // the address is in the request; adds no header about the program
		Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: dialTime}).DialContext, DisableCompression: true, IdleConnTimeout: time.Minute},
		ErrorLog:  silent, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: headerTime, ErrorLog: silent}
	p.serving.Go(func() { _ = p.server.Serve(listener) }) // the end is Close
	return p, nil
}

// Address is where the proxy listens.
func (p *Proxy) Address() netip.AddrPort { return p.address }

// Env returns the variables that make programs use the proxy.
func (p *Proxy) Env() (list []string) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		list = append(list, name+"=http://"+p.address.String())
	}
	return append(list, "NO_PROXY=", "no_proxy=", "NODE_USE_ENV_PROXY=1")
}

// Close ends the proxy and all connections through it.
func (p *Proxy) Close() error {
	p.end()
	err := p.server.Close()
	p.serving.Wait()
	p.forward.Transport.(*http.Transport).CloseIdleConnections() //nolint:forcetypeassert // of Listen
	return err
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	tunnel := r.Method == http.MethodConnect
	name, port, ok := target(r.URL, tunnel)
	switch {
	case !ok:
		http.Error(w, "this is a proxy for http: and CONNECT", http.StatusBadRequest)
		return
	case !slices.ContainsFunc(p.hosts, func(h Host) bool { return h.is(name, port) }):
		at := net.JoinHostPort(name, strconv.Itoa(int(port)))
		p.name(at)
		http.Error(w, at+" is not in the list of hosts", http.StatusForbidden)
		return
	}
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	default:
		http.Error(w, fmt.Sprintf("%d connections are open", mostOpen), http.StatusServiceUnavailable)
		return
	}
	if !tunnel {
		p.forward.ServeHTTP(w, r)
		return
	}
	p.connect(w, net.JoinHostPort(name, strconv.Itoa(int(port))))
}

// target returns the host of a request by its canonical name, and the port.
func target(u *url.URL, tunnel bool) (name string, port uint16, ok bool) {
	text := u.Port()
	if text == "" && !tunnel {
		text = "80"
	}
	number, err := strconv.ParseUint(text, 10, 16)
	name = canonical(u.Hostname())
	return name, uint16(number), err == nil && number > 0 && name != "" && (tunnel || u.Scheme == "http")
}

// name calls refused with a host, once.
func (p *Proxy) name(host string) {
	p.mu.Lock()
	known := p.named[host] || len(p.named) >= mostNamed
	if !known {
		p.named[host] = true
	}
	p.mu.Unlock()
	if !known {
		p.refused(host)
	}
}

// connect connects the client with a host until both have ended, or the proxy is closed.
func (p *Proxy) connect(w http.ResponseWriter, host string) {
	to, err := (&net.Dialer{Timeout: dialTime}).DialContext(p.ended, "tcp", host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = to.Close() }()
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the client has gone
	}
	defer func() { _ = from.Close() }()
	_ = from.SetDeadline(time.Time{}) // of the server's
	if _, err := io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	stop := context.AfterFunc(p.ended, func() { _, _ = from.Close(), to.Close() })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { pass(to, buffered) })
	both.Go(func() { pass(from, to) })
	both.Wait()
}

// pass copies until from has ended, and then ends to.
func pass(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from) // the other side sees the end
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
