package claudecode

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/engine/gateway"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// underOwnName makes the model's API one that the command reaches under the vendor's own name, by TLS, through a proxy.
func (w *world) underOwnName() {
	w.t.Helper()
	const host = "api.anthropic.com"
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		w.t.Fatal(err)
	}
	api, err := url.Parse(w.api.URL())
	if err != nil {
		w.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(api))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{made}, PrivateKey: key}}}
	server.StartTLS()
	w.t.Cleanup(server.Close)
	file := w.place(w.t.TempDir(), "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})))
	w.engine.Env = append(w.engine.Env, "ANTHROPIC_BASE_URL=https://"+host, "HTTPS_PROXY="+tunnel(w.t, server.Listener.Addr().String()), command.Certificates+"="+file)
}

// tunnel is an HTTP proxy that connects everything to one address.
func tunnel(t testing.TB, to string) string {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		out, err := new(net.Dialer).DialContext(context.WithoutCancel(r.Context()), "tcp", to)
		if r.Method != http.MethodConnect || err != nil {
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		in, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		_, _ = in.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
		pass := func(a, b net.Conn) { _, _ = io.Copy(a, b); _ = a.Close(); _ = b.Close() }
		go pass(in, out)
		go pass(out, in)
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// sent is a request as the service gets it, without what differs in every process.
type sent struct{ header, body string }

func sentTo(s *anthropicapi.Server) (all []sent) {
	differs := regexp.MustCompile(`(?i)(cch|cc_prompt_id|cc_prev_req)=[^;"]*|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|msg_\w+|toolu_\w+|use_\d+|[0-9a-f]{64}|/tmp/[^\s"\\` + "`" + `]*|\d+ tokens left|date is \d{4}-\d\d-\d\d`)
	// The last two say which tools have been used and how long they took, as far as the command has noted it by then.
	other := []string{"Content-Length", "Connection", "X-Forwarded-For", "Accept-Encoding", "X-Claude-Code-Prev-Tool-Durations", "X-Claude-Code-Sandy-Plover"}
	for _, q := range s.Requests() {
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(q.Header)) {
			if !slices.Contains(other, name) {
				lines = append(lines, name+": "+strings.Join(q.Header[name], ","))
			}
		}
		all = append(all, sent{differs.ReplaceAllString(strings.Join(lines, "\n"), "-"), differs.ReplaceAllString(string(q.Raw), "-")})
	}
	return all
}

// TestSameRequests: what the command sends to the vendor's service is the same with the gateway and without it: bodies, betas, tools, what
// is to be cached, with a key and with a login.
func TestSameRequests(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	for name, variables := range map[string][]string{
		"key":   nil,
		"login": {"ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-test"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "login" {
				anthropicapi.InCI(t)
			}
			var ways [2][]sent
			for i := range ways {
				w := newWorld(t)
				w.underOwnName()
				w.engine.Direct = i == 0
				w.engine.Env = append(w.engine.Env, variables...)
				w.ask("Bash", map[string]any{"command": "true", "description": "nothing"})
				if _, err := w.run(engine.Request{Input: engine.Input{Prompt: "go", System: "Be brief."}}, "Bash(true)"); err != nil {
					t.Fatal(err)
				}
				ways[i] = sentTo(w.api)
			}
			if len(ways[0]) != 2 || len(ways[1]) != 2 {
				t.Fatalf("%d requests without the gateway, %d with it", len(ways[0]), len(ways[1]))
			}
			for i, direct := range ways[0] {
				if through := ways[1][i]; direct != through {
					t.Errorf("request %d:\n%s", i+1, firstDifference(direct.header+"\n"+direct.body, through.header+"\n"+through.body))
				}
			}
		})
	}
}

func firstDifference(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	from := max(0, n-100)
	return fmt.Sprintf("without: %q\nwith:    %q", a[from:min(len(a), n+200)], b[from:min(len(b), n+200)])
}

// TestOffline: without a network the command asks its model through the gateway, under the vendor's own name and by an address. What it
// starts connects nowhere.
func TestOffline(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("REACHED")) }))
	t.Cleanup(other.Close)
	for name, prepare := range map[string]func(*world){"by address": func(*world) {}, "by name": (*world).underOwnName} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "by name" {
				anthropicapi.InCI(t)
			}
			w := newSealedWorld(t)
			api := w.api.URL()
			prepare(w)
			w.program("probe", "for at in "+other.URL+" "+api+"; do curl -sS --noproxy '*' $at; done; true")
			w.ask("Bash", map[string]any{"command": "./probe all", "description": "look"})
			r, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}, Scope: engine.Scope{Offline: true}}, "Bash(./probe *)")
			if text := w.result("Bash").Text; err != nil || r.Text == "" || strings.Contains(text, "REACHED") || strings.Count(text, "curl: (") != 2 {
				t.Errorf("%v: the agent's command printed %q", err, text)
			}
		})
	}
}

// TestKeyIsOutside: with the gateway no process of the sealed domain holds the key in its memory, environment or files. Without it the
// command does.
func TestKeyIsOutside(t *testing.T) {
	t.Parallel()
	for name, direct := range map[string]bool{"through the gateway": false, "without it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if direct {
				anthropicapi.InCI(t)
			}
			w := newSealedWorld(t)
			raw := []byte(keyOutside)
			slices.Reverse(raw)
			key := string(raw)
			w.engine.Direct, w.engine.Env = direct, append(w.engine.Env, "ANTHROPIC_API_KEY="+key)
			w.program("probe", "exec '"+w.engine.Self+"' stub '"+w.dir+"' search")
			w.ask("Bash", map[string]any{"command": "./probe all", "description": "look"})
			if _, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}}, "Bash(./probe *)"); err != nil {
				t.Fatal(err)
			}
			if got := w.api.Requests()[0].Header.Get("X-Api-Key"); got != key {
				t.Errorf("the service was asked with the key %q", got)
			}
			if text := w.result("Bash").Text; !strings.HasSuffix(text, "searched") || strings.Contains(text, "found:") != direct {
				t.Errorf("the agent's command printed %q", text)
			}
		})
	}
}

// TestRequestsAreKept: each request of the command is kept as the service got it, with the answer and what it cost.
func TestRequestsAreKept(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newWorld(t)
	w.ask("Bash", map[string]any{"command": "true", "description": "nothing"})
	var all kept
	r := engine.Request{Input: engine.Input{Prompt: "go"}, Model: engine.Model{Name: canaryModel}} // all versions have its price
	r.Run.Sent = all.keep
	result, err := w.run(r, "Bash(true)")
	if err != nil {
		t.Fatal(err)
	}
	all.check(w, 2, result.Cost)
}

// TestNoGate: a service that cannot be reached through the gateway is refused before the agent starts.
func TestNoGate(t *testing.T) {
	t.Parallel()
	offline := engine.Request{Scope: engine.Scope{Offline: true}}
	for _, c := range []struct {
		e    Engine
		want string
	}{
		{Engine{Env: []string{"ANTHROPIC_BASE_URL=api"}}, "not an address"},
		{Engine{Env: []string{command.Certificates + "=/nowhere/ca.pem"}}, command.Certificates},
		{Engine{Env: []string{"CLAUDE_CODE_CLIENT_CERT=/nowhere/c.pem"}}, "CLAUDE_CODE_CLIENT_CERT"},
	} {
		c.e.Disk.Now = time.Now
		if g, _, err := c.e.open(t.Context(), offline); err == nil || !strings.Contains(err.Error(), c.want) {
			g.close()
			t.Errorf("%v: %v", c.e.Env, err)
		}
	}
}

// TestKilled: a command that is killed during an answer is charged what the service has reported, and the service is not blamed.
func TestKilled(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newWorld(t)
	w.api.Reply(anthropicapi.Reply{Text: "one two three four", StreamDelay: time.Hour, Usage: anthropicapi.Usage{In: 1000, Out: 10}})
	go func() {
		w.api.WaitRequests(1, patience)
		process.KillAll("OLLIM_RUN=" + w.id)
	}()
	_, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}, Model: engine.Model{Name: canaryModel}})
	if err == nil || errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%v", err)
	}
	last := w.events[len(w.events)-1]
	most, _ := w.engine.Models.Resolve(canaryModel).Cost(model.Tokens{CacheWrite: ownTokens + 100, Out: 30 * tokensPerSecond})
	if last.Type != runlog.Request || last.Reported+last.Most <= 0 || last.Reported+last.Most > most {
		t.Errorf("booked %+v, want at most %v USD", last, most)
	}
}

// TestNeverAnswered: the command, which would ask ten times, ends when the service has not answered twice. The reason says it.
func TestNeverAnswered(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newWorld(t)
	w.engine.Idle, w.engine.Env = 5*time.Second, append(w.engine.Env, "CLAUDE_CODE_MAX_RETRIES=10")
	w.api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Fault: apiserver.Mute} })
	_, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}})
	if n := len(w.api.Requests()); n != 2 || !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "no data for 5 seconds") {
		t.Errorf("%d requests: %v", n, err)
	}
}

// TestSilence: an answer may be silent for a quarter of the time that is left, at least a minute and at most five.
func TestSilence(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	e := Engine{Disk: store.Disk{Now: func() time.Time { return now }}}
	if got := command.Silence(t.Context(), e.Disk.Now(), gateway.Idle); got != gateway.Idle {
		t.Errorf("without a limit: %s", got)
	}
	for left, want := range map[time.Duration]time.Duration{4 * time.Second: time.Minute, 8 * time.Minute: 2 * time.Minute, time.Hour: gateway.Idle} {
		ctx, cancel := context.WithDeadline(t.Context(), now.Add(left))
		if got := command.Silence(ctx, e.Disk.Now(), gateway.Idle); got != want {
			t.Errorf("%s left: %s, want %s", left, got, want)
		}
		cancel()
	}
}

// TestThinkingOff: the command turns thinking off for models that it takes for ones that allow it, as the manual says.
func TestThinkingOff(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	models := map[string]string{"claude-opus-4-8": "disabled"}
	newWorld(t)                           // finds out the version
	if examined.known.Version == newest { // an older one does not know these models
		models["claude-opus-5-5"], models["claude-haiku-5-5"] = "adaptive", "adaptive"
	}
	for name, want := range models {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if _, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}, Model: engine.Model{Name: name, Thinking: "off"}}); err != nil {
				t.Fatal(err)
			}
			if got := string(w.api.Requests()[0].Thinking); !strings.Contains(got, want) {
				t.Errorf("the service was asked with %s", got)
			}
		})
	}
}

// TestPlausible: counts that no service can mean are replaced by what the gateway has counted.
func TestPlausible(t *testing.T) {
	t.Parallel()
	c := costs{gate: &gateway.Gateway{}, reported: 0.5}
	honest := spent{Cost: 1, Models: map[string]consumed{"a": {In: 5, Cost: 1}}}
	if got := c.plausible(honest); got.Cost != 1 || len(got.Models) != 1 {
		t.Errorf("%+v", got)
	}
	for name, m := range map[string]consumed{"too many": {In: 1_000_000_000_000_000, Cost: 2e9}, "negative": {Out: -5, Cost: 1}} {
		absurd := spent{Cost: m.Cost, Models: map[string]consumed{"a": m}}
		if got := c.plausible(absurd); got.Cost != 0 || len(got.Models) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		direct := costs{reported: 0.5}
		if got := direct.plausible(absurd); got.Cost != 0.5 {
			t.Errorf("%s, without a gateway: %+v", name, got)
		}
	}
}
