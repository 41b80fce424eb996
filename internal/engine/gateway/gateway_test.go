package gateway

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit"
)

// world is a gateway between a program and a service.
type world struct {
	t       testing.TB
	g       *Gateway
	program *http.Client
	service *httptest.Server

	mu    sync.Mutex
	kept  []exchanged
	begun int // answers
}

type exchanged struct {
	body   string
	answer *request.Answer
}

// models has prices in USD for a million tokens.
const models = "claude-test-1 window=200000 in=10 out=100 cache-read=1 cache-write=20 cache-write-1h=40"

func newWorld(t testing.TB, serve http.HandlerFunc) *world {
	t.Helper()
	w := &world{t: t, service: httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // only then does the server notice that the client has gone
		r.Body = io.NopCloser(bytes.NewReader(body))
		serve(rw, r)
	}))}
	t.Cleanup(w.service.Close)
	address, err := url.Parse(w.service.URL + "/base")
	if err != nil {
		t.Fatal(err)
	}
	table, err := model.Known().With([]string{models})
	if err != nil {
		t.Fatal(err)
	}
	w.g = &Gateway{
		Service: address, Transport: &http.Transport{DisableCompression: true}, Models: table, Keep: w.keep,
		Secrets: map[string]string{"placeholder": "SECRET"},
	}
	return w
}

func (w *world) keep(body []byte) engine.Kept {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.kept)
	w.kept = append(w.kept, exchanged{body: string(body)})
	return engine.Kept{
		Begun: func() { w.begun++ },
		Answered: func(a request.Answer) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.kept[n].answer != nil {
				w.t.Error("an answer is kept twice")
			}
			w.kept[n].answer = &a
		},
	}
}

// listenTCP is listen on a port.
func (w *world) listenTCP() {
	w.t.Helper()
	at, err := w.g.ListenTCP(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.g.Close)
	w.program = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", at.String())
	}}}
}

func (w *world) listen() {
	w.t.Helper()
	dir, err := os.MkdirTemp("", "gateway") // a socket has a short path
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	if err := w.g.Listen(w.t.Context(), socket); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(w.g.Close)
	w.program = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
}

const question = `{"model":"claude-test-1","stream":true,"messages":[]}`

// ask sends a request as the program does.
func (w *world) ask(ctx context.Context, path string) (*http.Response, error) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://service.example/base"+path, strings.NewReader(question))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", "placeholder")
	r.Header.Set("Authorization", "Bearer placeholder")
	r.Header.Set("Anthropic-Beta", "one,two")
	return w.program.Do(r)
}

// answer returns the status and the body of the answer to a request.
func (w *world) answer() (int, string) {
	w.t.Helper()
	resp, err := w.ask(w.t.Context(), "/v1/messages?beta=true")
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, string(body) + err.Error()
	}
	return resp.StatusCode, string(body)
}

// last closes the gateway and returns what it has kept last.
func (w *world) last() exchanged {
	w.t.Helper()
	w.g.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.kept) == 0 || w.kept[len(w.kept)-1].answer == nil {
		w.t.Fatal("nothing is kept")
	}
	return w.kept[len(w.kept)-1]
}

// part returns an event of a stream.
func part(data string) string { return "event: x\ndata: " + data + "\n\n" }

const (
	started = `{"type":"message_start","message":{"model":"claude-test-1","usage":{"input_tokens":1000,"cache_read_input_tokens":10000,` +
		`"cache_creation_input_tokens":3000,"cache_creation":{"ephemeral_1h_input_tokens":1000,"ephemeral_5m_input_tokens":2000},"output_tokens":1}}}`
	text    = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`
	counted = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":500}}`
	stopped = `{"type":"message_stop"}`

	inputUSD   = 0.01 + 0.01 + 0.04 + 0.04 // input, read, written for five minutes, for an hour
	startedUSD = inputUSD + 0.0001
	stoppedUSD = inputUSD + 0.05
)

func streamed(w http.ResponseWriter, parts ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, p := range parts {
		_, _ = io.WriteString(w, part(p))
		w.(http.Flusher).Flush()
	}
}

func near(got, want float64) bool { return math.Abs(got-want) < 1e-9 }

// TestGateway: each part of an answer arrives before the next is sent; the service gets the key and what the program sent, and both are
// kept with usage and price.
func TestGateway(t *testing.T) {
	t.Parallel()
	var got http.Header
	var address, sent string
	next := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got, address, sent = r.Header.Clone(), r.URL.String(), string(body)
		for _, p := range []string{started, text, counted, stopped} {
			streamed(rw, p)
			select {
			case <-next:
			case <-r.Context().Done():
			}
		}
	})
	w.listen()
	resp, err := w.ask(t.Context(), "/v1/messages?beta=true")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReader(resp.Body)
	whole := ""
	for i, p := range []string{started, text, counted, stopped} {
		for range 3 {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			whole += line
		}
		if !strings.HasSuffix(whole, part(p)) {
			t.Fatalf("part %d: %q", i, whole)
		}
		if usd, unreported := w.g.Spent(); i == 0 && (!near(usd, startedUSD) || unreported != 0) {
			t.Errorf("while it streams %v USD are spent, not %v; %d without a report", usd, startedUSD, unreported)
		}
		next <- struct{}{}
	}
	if _, err := lines.ReadByte(); err != io.EOF {
		t.Error(err)
	}
	if got.Get("X-Api-Key") != "SECRET" || got.Get("Authorization") != "Bearer SECRET" || got.Get("Anthropic-Beta") != "one,two" || got.Get("Accept-Encoding") != "" {
		t.Errorf("the service got %v", got)
	}
	if got.Get("X-Forwarded-For") != "" || address != "/base/v1/messages?beta=true" || sent != question {
		t.Errorf("the service got %s with %s, forwarded for %q", address, sent, got.Get("X-Forwarded-For"))
	}
	last := w.last()
	if w.begun != 1 {
		t.Errorf("the answer has begun %d times", w.begun)
	}
	want := runlog.Usage{In: 1000, Out: 500, CacheRead: 10000, CacheWrite: 3000}
	if a := last.answer; last.body != question || string(a.Body) != whole || a.Usage == nil || *a.Usage != want || !near(a.Cost, stoppedUSD) ||
		a.Model != "claude-test-1" || a.Status != http.StatusOK || a.Cut != "" {
		t.Errorf("%q is kept with %+v", last.body, a)
	}
	if usd, unreported := w.g.Spent(); !near(usd, stoppedUSD) || unreported != 0 || w.g.Used() != want {
		t.Errorf("%v USD are spent, and %v used; %d without a report", usd, w.g.Used(), unreported)
	}
}

// TestLimit: an answer that exceeds the limit ends with an error that the program understands, and the next request is refused.
func TestLimit(t *testing.T) {
	t.Parallel()
	asked := 0
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		asked++
		streamed(rw, started)
		for r.Context().Err() == nil { // an answer without an end
			streamed(rw, text)
		}
	})
	w.g.Most = stoppedUSD
	w.listen()
	status, body := w.answer()
	if status != http.StatusOK || !strings.HasSuffix(body, part(`{"error":{"message":"the run has spent the 0.15 USD that its limit had left","type":"invalid_request_error"},"type":"error"}`)[len("event: x\n"):]) {
		t.Errorf("%d, %d bytes, %.200q", status, len(body), body[max(0, len(body)-200):])
	}
	if status, body := w.answer(); status != http.StatusBadRequest || !strings.Contains(body, "the 0.15 USD that its limit had left") || asked != 1 {
		t.Errorf("the next request: %d %q, and the service was asked %d times", status, body, asked)
	}
	if !w.g.Limited() {
		t.Error("the gateway does not say that it has ended an answer")
	}
	if a := w.last().answer; a.Usage == nil || a.Cost < startedUSD || a.Cost > 2*w.g.Most || !strings.Contains(a.Cut, "limit") {
		t.Errorf("%+v", a)
	}
}

// TestPaidAnswer: an answer whose whole usage is known is not cut, whatever it costs.
func TestPaidAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { streamed(rw, started, text, counted, stopped) })
	w.g.Most = startedUSD + 0.001
	w.listen()
	if status, body := w.answer(); status != http.StatusOK || !strings.HasSuffix(body, part(stopped)) || w.g.Limited() {
		t.Errorf("%d %q", status, body)
	}
	if status, _ := w.answer(); status != http.StatusBadRequest {
		t.Errorf("the next request: %d", status)
	}
}

// TestCount: the question how many tokens a request has costs nothing, and its answer is complete.
func TestCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, `{"input_tokens":2000}`) })
	w.listen()
	resp, err := w.ask(t.Context(), "/v1/messages/count_tokens")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if a := w.last().answer; a.Cut != "" || a.Usage != nil || w.begun != 0 {
		t.Errorf("%+v, begun %d times", a, w.begun)
	}
	if usd, unreported := w.g.Spent(); usd != 0 || unreported != 0 {
		t.Errorf("%v USD, %d without a report", usd, unreported)
	}
}

// TestFaults: each fault of the service has a clear end, and is named.
func TestFaults(t *testing.T) {
	t.Parallel()
	cut := func(rw http.ResponseWriter, parts ...string) {
		streamed(rw, parts...)
		panic(http.ErrAbortHandler)
	}
	for name, c := range map[string]struct {
		serve       http.HandlerFunc
		status      int
		body, fault string // parts
		cost        float64
	}{
		"refused": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", "7")
			rw.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(rw, `{"type":"error"}`)
		}, 429, `{"type":"error"}`, "", 0},
		"closed":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 502, "no answer from 127.0.0.1", "EOF", 0},
		"cut":     {func(rw http.ResponseWriter, _ *http.Request) { cut(rw, started, text) }, 200, "EOF", "no answer from 127.0.0.1", startedUSD},
		"silent":  {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 502, "no data for 0.05 seconds", "no data for 0.05 seconds", 0},
		"stalled": {func(rw http.ResponseWriter, r *http.Request) { streamed(rw, started); <-r.Context().Done() }, 200, "EOF", "no data for 10 seconds", startedUSD},
		"garbage": {func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("\x00{{{\ndata: {\n")) }, 200, "{{{", "", 0},
		"redirected": {func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, 502, "redirects requests to /elsewhere", "redirects requests to", 0},
		"absurd": {func(rw http.ResponseWriter, _ *http.Request) {
			streamed(rw, `{"type":"message_delta","usage":{"output_tokens":1000000000000000}}`, stopped)
		}, 200, "", "", 0},
		"in one": {func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(rw, `{"type":"message","model":"claude-test-1","stop_reason":"end_turn","usage":{"input_tokens":1000,"output_tokens":500}}`)
		}, 200, "", "", 0.06},
		"too long": {func(rw http.ResponseWriter, _ *http.Request) {
			streamed(rw, started)
			_, _ = io.Copy(rw, endless{100 << 20})
		}, 200, "EOF", "more than 67108864 bytes", startedUSD},
		"other words": {func(rw http.ResponseWriter, _ *http.Request) {
			streamed(rw, `{"model":"claude-test-1","choices":[{"delta":{"content":"x"}}]}`, `{"model":"claude-test-1","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":500,"prompt_tokens_details":{"cached_tokens":400}}}`, "[DONE]")
		}, 200, "", "", 0.006 + 0.0004 + 0.05},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.serve)
			switch name {
			case "silent":
				w.g.Idle = 50 * time.Millisecond
			case "stalled":
				w.g.Idle = 10 * time.Second // the beginning of the answer comes in time, also where the machine is busy
			}
			w.listen()
			w.program.CheckRedirect = NeverFollow
			status, body := w.answer()
			if status != c.status || !strings.Contains(body, c.body) {
				t.Errorf("the program got %d, %.200q", status, body[max(0, len(body)-200):])
			}
			a := w.last().answer
			if fault := w.g.Fault(); !strings.Contains(fault, c.fault) || (fault == "") != (c.fault == "") {
				t.Errorf("the fault is %q", fault)
			}
			silent := map[bool]int{true: 1}[name == "silent"] // the service may charge for it
			if usd, unreported := w.g.Spent(); !near(usd, c.cost) || unreported != silent || a.Usage != nil && !near(a.Cost, c.cost) {
				t.Errorf("%v USD are spent, and %v kept, not %v; %d without a report", usd, a.Cost, c.cost, unreported)
			}
		})
	}
}

// endless is an event of many bytes.
type endless struct{ bytes int }

func (e endless) Read([]byte) (int, error) { return 0, io.EOF }

// WriteTo implements io.WriterTo.
func (e endless) WriteTo(w io.Writer) (n int64, err error) {
	for err == nil && n < int64(e.bytes) {
		var m int
		m, err = w.Write(bytes.Repeat([]byte(": nothing\n"), 10_000))
		n += int64(m)
	}
	return n, err
}

// TestGone: a request that the program does not wait for counts with what the service has reported, or is known to have no report.
func TestGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before     []string
		cost       float64
		unreported int
	}{
		"before the answer": {nil, 0, 1},
		"in the answer":     {[]string{started}, startedUSD, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancel(t.Context())
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				streamed(rw, c.before...)
				if c.before == nil {
					leave()
				}
				<-r.Context().Done()
			})
			w.listen()
			if resp, err := w.ask(ctx, "/v1/messages"); err == nil {
				_, err := bufio.NewReader(resp.Body).ReadString('\n')
				if err != nil && c.before != nil {
					t.Error(err)
				}
				leave()
				_ = resp.Body.Close()
			}
			w.last()
			if usd, unreported := w.g.Spent(); !near(usd, c.cost) || unreported != c.unreported {
				t.Errorf("%v USD are spent, not %v; %d without a report", usd, c.cost, unreported)
			}
		})
	}
}

// TestClosed: what another process asks, and what the gateway does not know, is not passed on.
func TestClosed(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("X-Api-Key") })
	w.listen()
	for _, path := range []string{"/v1/messages/batches", "/v1/files", "/v1/organizations", "/v1/messages/../files", "/v1%2fmessages", "/other"} {
		resp, err := w.ask(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
		_ = resp.Body.Close()
	}
	for method, want := range map[string]int{http.MethodHead: 200, http.MethodGet: 403, http.MethodDelete: 403} {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://service.example/base/v1/messages", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := w.program.Do(r)
		if err != nil || resp.StatusCode != want {
			t.Errorf("%s: %v %v", method, resp, err)
			continue
		}
		_ = resp.Body.Close()
	}
	select {
	case key := <-asked:
		t.Errorf("the service was asked with the key %q", key)
	default:
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://service.example/base/v1/messages", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", "guessed")
	resp, err := w.program.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if key := <-asked; key != "guessed" {
		t.Errorf("a request without the placeholder gets the key %q", key)
	}
}

// TestUnreachable: the error names the host and no address that may be secret.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	w.g.Service.Host = testkit.Refused(t)
	w.listen()
	status, body := w.answer()
	if want := "no answer from " + w.g.Service.Host + ": connection refused"; status != http.StatusBadGateway || !strings.Contains(body, want) || w.g.Fault() != want {
		t.Errorf("%d %q, fault %q", status, body, w.g.Fault())
	}
}

// FuzzTally: an answer counts the same in whatever parts it arrives, and nothing in it is worth more than the limits.
func FuzzTally(f *testing.F) {
	for _, seed := range []string{part(started) + part(text) + part(counted) + part(stopped), started, "data: {\"usage\":{\"prompt_tokens\":5}}", "[{\"usageMetadata\": {\"promptTokenCount\": 5}}]", "{\n\"usage\": {\"input_tokens\": 5}\n}\n", "data:[DONE]\n", "\x00\n{"} {
		f.Add([]byte(seed), 3)
	}
	f.Add([]byte("\u2000"), 1) // white space that JSON has not
	f.Fuzz(func(t *testing.T, answer []byte, size int) {
		var whole, parts tally
		whole.add(answer)
		whole.end()
		for rest := answer; len(rest) > 0; {
			n := min(max(1, size), len(rest))
			parts.add(rest[:n])
			rest = rest[n:]
		}
		parts.end()
		if fmt.Sprint(whole) != fmt.Sprint(parts) {
			t.Errorf("%+v in one part, %+v in several", whole, parts)
		}
		if u := whole.usage; min(u.In, u.Out, u.CacheRead, u.CacheWrite) < 0 || max(u.In, u.Out, u.CacheRead, u.CacheWrite) > engine.MostTokens {
			t.Errorf("%+v", u)
		}
	})
}
