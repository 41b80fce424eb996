package claudecode

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/seal"
)

// TestOffline: without a network the command asks its model, by an address, and by a name through the owner's proxy. What it starts
// connects nowhere else.
func TestOffline(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("REACHED")) }))
	t.Cleanup(other.Close)
	for name, prepare := range map[string]func(*world){"by address": func(*world) {}, "by name": (*world).named} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newSealedWorld(t)
			prepare(w)
			w.program("probe", "curl -sS --noproxy '*' "+other.URL+"; curl -sS --proxy \"$HTTPS_PROXY\" https://example.org/; true")
			w.ask("Bash", map[string]any{"command": "./probe all", "description": "look"})
			r, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}, Scope: engine.Scope{Offline: true}}, "Bash(./probe *)")
			if text := w.result("Bash").Text; err != nil || r.Text == "" || strings.Contains(text, "REACHED") || strings.Count(text, "curl: (") != 2 {
				t.Errorf("%v: the agent's command printed %q", err, text)
			}
		})
	}
}

// named makes the model's API one that has a name, which only the owner's proxy knows.
func (w *world) named() {
	w.t.Helper()
	api, err := url.Parse(w.api.URL())
	if err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(api))
	w.t.Cleanup(server.Close)
	own, err := seal.NewProxy([]string{"example.com:443"}, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = own.Close() })
	certificate := w.place(w.t.TempDir(), "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	w.engine.Env = append(w.engine.Env, "ANTHROPIC_BASE_URL=https://example.com", "HTTPS_PROXY=http://"+own.Addr(), certificates+"="+certificate)
}

// TestNoReach: an address that cannot be reached is refused before the agent starts.
func TestNoReach(t *testing.T) {
	for _, env := range []string{"ANTHROPIC_BASE_URL=http://api.example", "ANTHROPIC_BASE_URL=api", "HTTPS_PROXY=socks5://secret@proxy:1080"} {
		e := &Engine{Env: []string{env}}
		if way, err := e.reach(); err == nil || strings.Contains(err.Error(), "secret") {
			way.close()
			t.Errorf("%s: %v", env, err)
		}
	}
}
