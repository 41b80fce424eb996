package claudecode

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/seal"
)

// Without a network the command, and what it starts, still reach the model's API: the seal cannot tell them apart. It cannot resolve
// names, so it connects through a proxy in this process, which connects only to that host and port.

// reach is the connection of a sealed process to the model's API.
type reach struct {
	connect []string // HOST:PORT addresses that the seal allows
	env     []string
	proxy   *seal.Proxy // nil if no proxy is needed
}

// reach prepares the connection to the model's API.
func (e *Engine) reach() (way reach, err error) {
	base, err := url.Parse(cmp.Or(e.variable("ANTHROPIC_BASE_URL"), "https://api.anthropic.com"))
	if err != nil || base.Host == "" {
		return way, fmt.Errorf("%w: ANTHROPIC_BASE_URL is not an address", engine.ErrSetup)
	}
	host, port := base.Hostname(), cmp.Or(base.Port(), map[string]string{"http": "80"}[base.Scheme], "443")
	way.env = []string{"NO_PROXY=" + host, "no_proxy=" + host}
	if _, err := netip.ParseAddr(host); err == nil {
		way.connect = []string{net.JoinHostPort(host, port)}
		return way, nil
	}
	if host == "localhost" {
		way.connect = []string{"127.0.0.1:" + port, "[::1]:" + port}
		return way, nil
	}
	if base.Scheme != "https" {
		return way, fmt.Errorf("%w: network: none: ANTHROPIC_BASE_URL must be https, an IP address or localhost", engine.ErrSetup)
	}
	dial := new(net.Dialer).DialContext
	if own := cmp.Or(e.variable("HTTPS_PROXY"), e.variable("https_proxy")); own != "" {
		if dial, err = through(own); err != nil {
			return way, err
		}
	}
	if way.proxy, err = seal.NewProxy([]string{net.JoinHostPort(host, port)}, dial); err != nil {
		return way, err
	}
	way.connect = []string{way.proxy.Addr()}
	way.env = []string{"HTTPS_PROXY=http://" + way.proxy.Addr(), "https_proxy=http://" + way.proxy.Addr(), "NO_PROXY=", "no_proxy="}
	return way, nil
}

func (w reach) close() {
	if w.proxy != nil {
		_ = w.proxy.Close()
	}
}

// dialer is a function that connects to HOST:PORT.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// through returns a dialer that connects through the owner's own proxy.
func through(proxy string) (dialer, error) {
	u, err := url.Parse(proxy)
	if err != nil || u.Scheme != "http" || u.Host == "" { // err is not returned, because it would show a password
		return nil, fmt.Errorf("%w: network: none: HTTPS_PROXY must be http://HOST:PORT", engine.ErrSetup)
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80")))
		if err != nil {
			return nil, err
		}
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
		if u.User != nil {
			password, _ := u.User.Password()
			request.SetBasicAuth(u.User.Username(), password)
			request.Header = http.Header{"Proxy-Authorization": request.Header["Authorization"]}
		}
		if err := request.Write(conn); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), request) //nolint:bodyclose // an answer to CONNECT has none, and what follows is the host's
		if err == nil && response.StatusCode != http.StatusOK {
			err = errors.New(response.Status)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("the proxy: %w", err), conn.Close())
		}
		return conn, nil
	}, nil
}
