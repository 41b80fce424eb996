package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestParse(t *testing.T) {
	for _, text := range []string{"", "a b", "https://a.example", "a.example/x", "*", "*.", "a.*.example", "a.example:0", "a.example:http", "[::1", ".a", "a..b", "1.2.3.4/8", "a:1:2"} {
		if h, err := Parse(text); err == nil {
			t.Errorf("%q is %v", text, h)
		}
	}
	for _, c := range []struct {
		text, name string
		port       uint16
		want       bool
	}{
		{"API.Example.org", "api.example.org", 443, true},
		{"api.example.org.", "api.example.org", 1, true},
		{"api.example.org:443", "api.example.org", 443, true},
		{"api.example.org:443", "api.example.org", 80, false},
		{"api.example.org", "x.api.example.org", 443, false},
		{"api.example.org", "api.example.org.evil.example", 443, false},
		{"*.example.org", "a.b.example.org", 443, true},
		{"*.example.org", "example.org", 443, false},
		{"*.example.org", "evilexample.org", 443, false},
		{"*.example.org:443", "a.example.org", 444, false},
		{"::1", "::1", 9, true},
		{"[::1]:9", "::1", 9, true},
		{"::ffff:127.0.0.1", "127.0.0.1", 9, true},
	} {
		h, err := Parse(c.text)
		if err != nil || h.is(c.name, c.port) != c.want {
			t.Errorf("%q and %s:%d: %v, %v", c.text, c.name, c.port, h, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	got := fmt.Sprint(Addresses(hosts(t, "localhost:80", "a.example", "10.0.0.1", "[::2]:7")))
	if want := "[127.0.0.1:80 [::1]:80 10.0.0.1:0 [::2]:7]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func hosts(t *testing.T, texts ...string) (list []Host) {
	t.Helper()
	for _, text := range texts {
		h, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, h)
	}
	return list
}

// TestProxy: requests and tunnels reach a listed host only, and each other host is reported once.
func TestProxy(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Host, r.URL, r.Header.Get("X-Forwarded-For"))
	})
	plain, secret, other := httptest.NewServer(answer), httptest.NewTLSServer(answer), httptest.NewServer(answer)
	for _, s := range []*httptest.Server{plain, secret, other} {
		t.Cleanup(s.Close)
	}
	var mu sync.Mutex
	var refused []string
	p, err := Listen(hosts(t, plain.Listener.Addr().String(), secret.Listener.Addr().String()), func(host string) {
		mu.Lock()
		defer mu.Unlock()
		refused = append(refused, host)
	})
	if err != nil {
		t.Fatal(err)
	}
	client := secret.Client()
	client.Transport.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: p.Address().String()})
	get := func(address string) string {
		resp, err := client.Get(address)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = resp.Body.Close() }()
		text, _ := io.ReadAll(resp.Body)
		return resp.Status + " " + string(text)
	}
	for _, s := range []*httptest.Server{plain, secret} {
		if got := get(s.URL + "/a?b=c"); got != "200 OK "+s.Listener.Addr().String()+" /a?b=c " {
			t.Errorf("%s: got %s", s.URL, got)
		}
	}
	at := other.Listener.Addr().String()
	for range 2 {
		if got := get(other.URL); got != "403 Forbidden "+at+" is not in the list of hosts\n" {
			t.Errorf("got %s", got)
		}
		if got := get("https://" + at); !strings.Contains(got, "Forbidden") {
			t.Errorf("got %s", got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(refused, []string{at}) {
		t.Errorf("refused %v, want %s once", refused, at)
	}
	c, in := dial(t, p)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+plain.Listener.Addr().String()+"\r\n\r\n")
	if got, err := in.ReadString('\n'); err != nil || !strings.Contains(got, " 400 ") {
		t.Errorf("a request that is not for a proxy: %q, %v", got, err)
	}
}

func dial(t *testing.T, p *Proxy) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", p.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, bufio.NewReader(c)
}

// TestTunnelEnds: what one side ends is ended for the other, data that came with the request is passed on, and Close ends the rest.
func TestTunnelEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p, err := Listen(hosts(t, "127.0.0.1"), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	open := func() (from, to net.Conn, in *bufio.Reader) {
		from, in = dial(t, p)
		_, _ = fmt.Fprintf(from, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\nfirst", l.Addr())
		to, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = to.Close() })
		if got, err := in.ReadString('\n'); err != nil || !strings.Contains(got, " 200 ") {
			t.Fatalf("%q, %v", got, err)
		}
		if got, err := in.ReadString('\n'); got != "\r\n" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		return from, to, in
	}
	from, to, in := open()
	_ = from.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(to); string(got) != "first" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	_, _ = io.WriteString(to, "answer")
	_ = to.Close()
	if got, err := io.ReadAll(in); string(got) != "answer" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	_, to, in = open()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	_, _ = io.ReadAll(to) // ends
	_, _ = io.ReadAll(in)
	if c, err := net.Dial("tcp", p.Address().String()); err == nil {
		_ = c.Close()
		t.Error("the proxy listens")
	}
}
