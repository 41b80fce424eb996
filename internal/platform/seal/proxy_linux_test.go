package seal

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestProxy: a sealed program without a network reaches the host that the proxy allows, and no other one.
func TestProxy(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("answer")) }))
	t.Cleanup(server.Close)
	proxy, err := NewProxy([]string{"api.example:443"}, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	})
	if err != nil {
		t.Fatal(err)
	}
	requireProgram(t, "curl", "/usr/bin:/bin")
	p := newPlace(t)
	p.Rules.Connect = []string{proxy.Addr()}
	s := p.seal(t)
	for script, want := range map[string]string{
		"curl -sSk https://api.example/":                        "answer",
		"curl -sSk https://api.example/ --proxy ''":             "Could not resolve host",
		"curl -sSk https://other.example/":                      "403",
		"curl -sSk https://api.example:444/":                    "403",
		"curl -sS http://api.example/ -w '%{http_code}'":        "403",
		"curl -sSk --proxy '' " + server.URL:                    "Couldn't connect",
		"curl -sSk https://api.example/ --http1.1 -T /bin/true": "answer",
	} {
		cmd := p.shell(script)
		cmd.Env = append(cmd.Env, "https_proxy=http://"+proxy.Addr(), "http_proxy=http://"+proxy.Addr())
		if got := output(t, s, cmd); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	endless, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = endless.Close() }()
	written, _ := io.CopyN(endless, zeros{}, 64<<20) // fails when the proxy has closed the connection
	if written == 64<<20 {
		t.Error("the proxy reads a request without an end")
	}
	if err := proxy.Close(); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", proxy.Addr()); err == nil {
		_ = conn.Close()
		t.Error("the proxy listens after Close")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
