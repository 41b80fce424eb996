package mcpclient

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
)

const asServer = "OLLIM_TEST_MCP_SERVER"

// TestMain makes this program the servers of the tests.
func TestMain(m *testing.M) {
	switch os.Getenv(asServer) {
	case "":
		os.Exit(m.Run())
	case "peer":
		if err := server.NewStdioServer(peer()).Listen(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
	case "dead":
		fmt.Fprintln(os.Stderr, "cannot start: the token hunter2hunter2 is wrong")
		os.Exit(3)
	case "mute":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "deaf":
		time.Sleep(time.Hour) // select would be a deadlock, where the program is built without cgo
	case "garbage":
		fmt.Println("not json")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "endless":
		out := bufio.NewWriter(os.Stdout)
		more := strings.Repeat("x", 1<<20)
		for _, err := out.WriteString(more); err == nil; _, err = out.WriteString(more) {
		}
	}
}

// peer is a server with a tool of each kind.
func peer() *server.MCPServer {
	s := server.NewMCPServer("peer", "1")
	add := func(name string, call func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
		s.AddTool(mcp.NewToolWithRawSchema(name, "The tool "+name+".", json.RawMessage(`{"type":"object","oneOf":[{"required":["a"]},{}]}`)), call)
	}
	text := func(s string) (*mcp.CallToolResult, error) { return mcp.NewToolResultText(s), nil }
	add("echo", func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		raw, err := json.Marshal(r.Params.Arguments)
		if err != nil {
			return nil, err
		}
		return text(string(raw))
	})
	add("fail", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("no such thing"), nil
	})
	add("environment", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n"))
	})
	add("pid", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(fmt.Sprint(os.Getpid()))
	})
	add("long", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("ü", maxText+7))
	})
	add("half", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("x", maxText-7) + os.Getenv("TOKEN"))
	})
	add("for_"+os.Getenv("TOKEN"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("") })
	add("exit", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(9)
		return nil, nil
	})
	add("wait", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	add("dotted.name", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("dotted") })
	add("pictures", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := mcp.NewToolResultText("seen")
		for range maxFiles + 1 {
			r.Content = append(r.Content, mcp.NewImageContent(base64.StdEncoding.EncodeToString(png()), "image/png"))
		}
		return r, nil
	})
	add("picture", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultImage("seen", base64.StdEncoding.EncodeToString(png()), "image/png"), nil
	})
	return s
}

func png() []byte {
	raw, _ := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	return raw
}

// newClient returns a client of a server of this program.
func newClient(t *testing.T, role string, patterns ...string) *Client {
	t.Helper()
	c := &Client{
		Server: Server{
			Name: "peer", Command: []string{os.Args[0]}, Env: []string{"PATH=" + os.Getenv("PATH"), asServer + "=" + role, "TOKEN=hunter2hunter2"},
			Timeout: time.Minute,
		},
		Patterns: patterns, Cache: filepath.Join(t.TempDir(), "mcp", "peer.json"), Now: time.Now, Run: "r-1",
		Secrets: plaintext.NewSecrets("hunter2hunter2"),
	}
	t.Cleanup(c.Close)
	return c
}

func names(list []engine.Tool) (all []string) {
	for _, tool := range list {
		all = append(all, tool.Name)
	}
	return all
}

func TestTools(t *testing.T) {
	c := newClient(t, "peer", "mcp__peer__e*", "mcp__peer__dotted_name", "mcp__peer__missing", "mcp__other__pid", "Read(./**)")
	list := c.List(t.Context())
	if got := names(list); !slices.Equal(got, []string{"dotted_name", "echo", "environment", "exit"}) {
		t.Fatalf("got %q", got)
	}
	if !strings.Contains(string(list[1].Schema), "oneOf") || list[1].Description != "The tool echo." {
		t.Errorf("got %+v", list[1])
	}
	for _, test := range []struct{ name, input, want string }{{"echo", `{"a":1.50}`, `{"a":1.5}`}, {"dotted_name", `{}`, "dotted"}} {
		if r := c.Call(t.Context(), test.name, json.RawMessage(test.input)); r.Text != test.want || r.IsError {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
	if r := c.Call(t.Context(), "fail", nil); !r.IsError || !strings.Contains(r.Text, `no tool "fail"`) {
		t.Errorf("a tool that no pattern names: %+v", r)
	}
	if got := c.Failures(); got != nil {
		t.Errorf("failures %q", got)
	}
}

func TestResults(t *testing.T) {
	c := newClient(t, "peer", "mcp__peer__*")
	if list := names(c.List(t.Context())); slices.Contains(list, "for_hunter2hunter2") {
		t.Errorf("a name holds a secret: %q", list)
	}
	if r := c.Call(t.Context(), "fail", json.RawMessage("{}")); !r.IsError || r.Text != "no such thing" {
		t.Errorf("fail: %+v", r)
	}
	if r := c.Call(t.Context(), "environment", json.RawMessage("{}")); strings.Contains(r.Text, "hunter2") || !strings.Contains(r.Text, "TOKEN=[secret]") {
		t.Errorf("environment: %q", r.Text)
	}
	if r := c.Call(t.Context(), "long", json.RawMessage("{}")); !strings.HasSuffix(r.Text, "ü\n(7 more characters omitted)") {
		t.Errorf("long: …%q", r.Text[len(r.Text)-60:])
	}
	if r := c.Call(t.Context(), "half", json.RawMessage("{}")); strings.Contains(r.Text, "hunter2") {
		t.Errorf("half of a secret: …%q", r.Text[len(r.Text)-60:])
	}
	if r := c.Call(t.Context(), "picture", json.RawMessage("{}")); r.Text != "seen" || r.Source == nil || r.Source.MediaType != "image/png" {
		t.Errorf("picture: %+v", r)
	}
	r := c.Call(t.Context(), "pictures", json.RawMessage("{}"))
	if r.Source == nil || len(r.More) != maxFiles-1 || !strings.HasPrefix(r.Text, "(8 files; ") || !strings.Contains(r.Text, "omitted") {
		t.Errorf("pictures: %+v", r)
	}
	if got := c.Failures(); got != nil {
		t.Errorf("failures %q", got)
	}
}

// TestStoppedStart: the end of a run while a server starts is no failure of the server.
// A secret is not shown by its second half, where standard error is cut.
func TestCutStderr(t *testing.T) {
	c := newClient(t, "", "mcp__peer__*")
	c.Server.Command = []string{"/bin/sh", "-c", fmt.Sprintf(`{ printf %%s "$TOKEN"; head -c %d /dev/zero | tr '\0' x; } >&2; exit 3`, process.StderrLimit-9)}
	c.List(t.Context())
	if got := fmt.Sprint(c.Failures()); strings.Contains(got, "er2h") || !strings.Contains(got, "exit status 3: [secret]xxx") {
		t.Error(got)
	}
}

func TestStoppedStart(t *testing.T) {
	t.Parallel()
	c := newClient(t, "mute", "mcp__peer__*")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if list := c.List(ctx); len(list) > 0 || c.Failures() != nil {
		t.Errorf("got %+v, failures %q", list, c.Failures())
	}
}

// TestCache: a run that calls nothing starts nothing, for a day.
func TestCache(t *testing.T) {
	c := newClient(t, "peer", "mcp__peer__*")
	first := names(c.List(t.Context()))
	again := newClient(t, "dead", "mcp__peer__*")
	again.Cache = c.Cache
	if got := names(again.List(t.Context())); !slices.Equal(got, first) || again.starts != 0 {
		t.Errorf("got %q, want %q; %d starts", got, first, again.starts)
	}
	old := newClient(t, "dead", "mcp__peer__*")
	old.Cache, old.Now = c.Cache, func() time.Time { return time.Now().Add(25 * time.Hour) }
	if got := names(old.Known()); !slices.Equal(got, first) {
		t.Errorf("known: %q", got)
	}
	if got := names(old.List(t.Context())); !slices.Equal(got, []string{unavailable}) {
		t.Errorf("after a day: %q", got)
	}
}

func TestServersThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{
		"dead": "exit status 3: cannot start: the token [secret] is wrong", "mute": "did not start within 300ms", "garbage": "did not start within 300ms",
		"deaf": "did not start within 300ms", "endless": "a message of more than",
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, role, "mcp__peer__echo", "mcp__peer__a*")
			if c.Server.Timeout = 300 * time.Millisecond; role == "dead" || role == "endless" {
				c.Server.Timeout = time.Minute
			}
			c.grace = 100 * time.Millisecond
			list := c.List(t.Context())
			if got := names(list); !slices.Equal(got, []string{"echo"}) || !strings.Contains(list[0].Description, want) {
				t.Errorf("got %+v", list)
			}
			if got := c.Failures(); len(got) != 1 || !strings.Contains(got[0], want) {
				t.Errorf("failures %q", got)
			}
			if r := c.Call(t.Context(), "echo", json.RawMessage("{}")); !r.IsError || !strings.Contains(r.Text, want) {
				t.Errorf("called: %+v", r)
			}
			again := newClient(t, "peer", "mcp__peer__echo")
			again.Cache = c.Cache
			if again.List(t.Context()); again.starts != 0 {
				t.Error("another process of the run has started the server again")
			}
			next := newClient(t, "peer", "mcp__peer__echo")
			next.Cache, next.Run = c.Cache, "r-2"
			if list := next.List(t.Context()); next.starts != 1 || len(list) != 1 || strings.Contains(list[0].Description, "cannot") {
				t.Errorf("the next run has %+v", list)
			}
		})
	}
	c := newClient(t, "peer", "mcp__peer__*")
	c.Server.Wrong = fmt.Errorf("the secret mcp.X is missing")
	if list := c.List(t.Context()); names(list)[0] != unavailable || c.starts != 0 {
		t.Errorf("got %+v", list)
	}
}

// TestServerThatEnds: the call fails, and the next starts the server again, a few times.
func TestServerThatEnds(t *testing.T) {
	c := newClient(t, "peer", "mcp__peer__*")
	c.List(t.Context())
	for n := range mostStarts {
		if r := c.Call(t.Context(), "echo", json.RawMessage(`{}`)); r.IsError {
			t.Fatalf("start %d: %+v", n, r)
		}
		r := c.Call(t.Context(), "exit", json.RawMessage(`{}`))
		if !r.IsError || !strings.Contains(r.Text, "exit status 9: out of memory") {
			t.Fatalf("%+v", r)
		}
	}
	if r := c.Call(t.Context(), "echo", json.RawMessage(`{}`)); !r.IsError || !strings.Contains(r.Text, "3 times") {
		t.Errorf("%+v", r)
	}
	if got := c.Failures(); len(got) != 2 {
		t.Errorf("failures %q", got)
	}
}

// TestSlowCall: it fails, and the server is told; the next call works.
func TestSlowCall(t *testing.T) {
	t.Parallel()
	c := newClient(t, "peer", "mcp__peer__*")
	c.List(t.Context())
	c.Server.Timeout = 200 * time.Millisecond
	if r := c.Call(t.Context(), "wait", json.RawMessage(`{}`)); !r.IsError || !strings.Contains(r.Text, "no answer to a call within 200ms") {
		t.Errorf("%+v", r)
	}
	c.Server.Timeout = time.Minute
	if r := c.Call(t.Context(), "echo", json.RawMessage(`{}`)); r.IsError || c.starts != 1 {
		t.Errorf("%+v, %d starts", r, c.starts)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	stop(fmt.Errorf("stopped"))
	if r := c.Call(ctx, "wait", json.RawMessage(`{}`)); !r.IsError {
		t.Errorf("%+v", r)
	}
}

func TestCloseEndsTheServer(t *testing.T) {
	c := newClient(t, "peer", "mcp__peer__*")
	c.List(t.Context())
	var pid int
	if _, err := fmt.Sscan(c.Call(t.Context(), "pid", json.RawMessage(`{}`)).Text, &pid); err != nil || !(process.ID{PID: pid}).Alive() {
		t.Fatalf("pid %d, %v", pid, err)
	}
	c.Close()
	if (process.ID{PID: pid}).Alive() {
		t.Error("the server still runs")
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	var refused atomic.Int32
	inner := server.NewStreamableHTTPServer(peer())
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hunter2hunter2" {
			refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	defer site.Close()
	open := func(url string, headers ...string) *Client {
		c := newClient(t, "", "mcp__peer__*")
		c.Server.Command, c.Server.URL, c.Server.Headers = nil, url, headers
		return c
	}
	c := open(site.URL+"/mcp", "Authorization: Bearer hunter2hunter2")
	if got := names(c.List(t.Context())); !slices.Contains(got, "echo") {
		t.Fatalf("got %q, failures %q", got, c.Failures())
	}
	if r := c.Call(t.Context(), "echo", json.RawMessage(`{"a":"b"}`)); r.Text != `{"a":"b"}` {
		t.Errorf("%+v", r)
	}
	c.Server.Timeout = 200 * time.Millisecond
	if r := c.Call(t.Context(), "wait", json.RawMessage(`{}`)); !r.IsError || !strings.Contains(r.Text, "no answer") {
		t.Errorf("%+v", r)
	}
	c.Close()
	if n := refused.Load(); n != 0 {
		t.Errorf("%d requests without the header", n)
	}
	elsewhere := httptest.NewServer(http.RedirectHandler(site.URL+"/mcp", http.StatusTemporaryRedirect))
	defer elsewhere.Close()
	for url, want := range map[string]string{
		site.URL + "/mcp": "requires authorization", elsewhere.URL + "/?key=hunter2hunter2": "307", "http://127.0.0.1:1/?key=hunter2hunter2": "no connection",
	} {
		c := open(url)
		c.List(t.Context())
		if got := c.Failures(); len(got) != 1 || !strings.Contains(got[0], want) || strings.Contains(got[0], "hunter2") {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

func TestSet(t *testing.T) {
	one, two := newClient(t, "peer", "mcp__one__echo"), newClient(t, "dead", "mcp__two__*")
	one.Server.Name, two.Server.Name = "one", "two"
	s := Set{one, two}
	if got := names(s.List(t.Context())); !slices.Equal(got, []string{"mcp__one__echo", "mcp__two__unavailable"}) {
		t.Errorf("got %q", got)
	}
	if got := s.Failures(); len(got) != 1 || len(got["two"]) != 1 {
		t.Errorf("failures %q", got)
	}
	if r := s.Call(t.Context(), "mcp__one__echo", json.RawMessage(`{}`)); r.IsError || r.Text != "{}" {
		t.Errorf("%+v", r)
	}
	s.Close()
}
