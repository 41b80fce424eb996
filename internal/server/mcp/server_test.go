package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/ollim/ollim/internal/engine"
)

// TestMain is also the server that the tests over real streams start.
func TestMain(m *testing.M) {
	if os.Getenv("OLLIM_TEST_MCP_SERVER") == "" {
		os.Exit(m.Run())
	}
	signal.Ignore(syscall.SIGPIPE) // the client may have closed stderr when the last word is said
	if err := serveToys(); err != nil {
		fmt.Fprintln(os.Stderr, "END "+err.Error())
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "END of input")
}

func serveToys() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	warn := func(text string) { fmt.Fprintln(os.Stderr, "WARN "+text) }
	return Server{Tools: toys{}, Version: "1.2.3", Warn: warn}.Serve(ctx, os.Stdin, os.Stdout)
}

const echoSchema = `{"type":"object","properties":{"z":{"type":"string","minLength":1},"a":{"oneOf":[{"type":"integer"},{"type":"null"}]}},` +
	`"additionalProperties":false,"x-own":[1,2]}`

// toys are tools that do what a test needs.
type toys struct{}

func (toys) List() []engine.Tool {
	return []engine.Tool{
		{Name: "ping_user", Description: "Pings.", Schema: json.RawMessage(echoSchema)},
		{Name: "echo", Description: "Says its input.", Schema: json.RawMessage(echoSchema)},
		{Name: "fail"}, {Name: "crash"}, {Name: "sleep"}, {Name: "long"},
	}
}

func (toys) Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult {
	switch name {
	case "fail":
		return engine.ToolResult{Text: "it did not work", IsError: true}
	case "crash":
		var nowhere *engine.Tool
		return engine.ToolResult{Text: nowhere.Name}
	case "sleep":
		<-ctx.Done()
		return engine.ToolResult{Text: context.Cause(ctx).Error(), IsError: true}
	case "long":
		return engine.ToolResult{Text: strings.Repeat("0123456789", 30_000)}
	}
	return engine.ToolResult{Text: string(input)}
}

// box is tools made of functions.
type box struct {
	list func() []engine.Tool
	call func(context.Context, string, json.RawMessage) engine.ToolResult
}

func (b box) List() []engine.Tool { return b.list() }

func (b box) Call(ctx context.Context, name string, input json.RawMessage) engine.ToolResult {
	return b.call(ctx, name, input)
}

func one(call func(context.Context, string, json.RawMessage) engine.ToolResult) box {
	return box{list: func() []engine.Tool { return []engine.Tool{{Name: "it"}} }, call: call}
}

// peer is a client that speaks in lines.
type peer struct {
	t      *testing.T
	in     *io.PipeWriter
	lines  *bufio.Scanner
	out    *io.PipeReader
	stop   context.CancelFunc
	ended  chan error
	mu     sync.Mutex
	warned []string
}

func connect(t *testing.T, tools Tools) *peer {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	p := &peer{t: t, in: inW, out: outR, lines: bufio.NewScanner(outR), stop: stop, ended: make(chan error, 1)}
	p.lines.Buffer(nil, maxLine)
	go func() {
		p.ended <- Server{Tools: tools, Version: "1.2.3", Warn: p.warn}.Serve(ctx, inR, outW)
		outW.Close()
	}()
	t.Cleanup(func() {
		stop()
		inW.Close()
		outR.Close()
	})
	return p
}

func (p *peer) warn(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.warned = append(p.warned, text)
}

func (p *peer) warnings() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.warned)
}

func (p *peer) send(lines ...string) {
	p.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(p.in, line+"\n"); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *peer) next() string {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatal("no more lines")
	}
	return p.lines.Text()
}

// rest is all lines that still come.
func (p *peer) rest() (lines []string) {
	for p.lines.Scan() {
		lines = append(lines, p.lines.Text())
	}
	return lines
}

func (p *peer) expect(want string) {
	p.t.Helper()
	got := p.next()
	if !sameJSON(p.t, got, want) {
		p.t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// open does what a client does first.
func (p *peer) open() {
	p.t.Helper()
	p.send(`{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
	p.next()
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func request(id any, tool, arguments string) string {
	raw, _ := json.Marshal(id)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":"t"}}}`, raw, tool, arguments)
}

func result(id any, text string) string {
	raw, _ := json.Marshal(id)
	said, _ := json.Marshal(text)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`, raw, said)
}

const pong = `{"jsonrpc":"2.0","id":"ping","result":{}}`
const ping = `{"jsonrpc":"2.0","id":"ping","method":"ping"}`

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return reflect.DeepEqual(x, y)
}

// start initializes a real client. Without Start it would get no notifications.
func start(t *testing.T, c *client.Client) *mcp.InitializeResult {
	t.Helper()
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var r mcp.InitializeRequest
	r.Params.ProtocolVersion = "2025-11-25"
	r.Params.ClientInfo = mcp.Implementation{Name: "test", Version: "0"}
	info, err := c.Initialize(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func callWith(t *testing.T, c *client.Client, tool string, arguments any) (*mcp.CallToolResult, error) {
	t.Helper()
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = tool, arguments
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	return c.CallTool(ctx, r)
}

func TestARealClientOverPipes(t *testing.T) {
	p := connect(t, toys{})
	c := client.NewClient(transport.NewIO(p.out, p.in, io.NopCloser(strings.NewReader(""))))
	info := start(t, c)
	if info.ServerInfo.Name != "ollim" || info.ServerInfo.Version != "1.2.3" || info.ProtocolVersion != "2025-11-25" {
		t.Errorf("%+v", info)
	}
	everything(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-p.ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// everything is what a client does with the toys.
func everything(t *testing.T, c *client.Client) {
	t.Helper()
	list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if want := []string{"crash", "echo", "fail", "long", "ping_user", "sleep"}; !slices.Equal(names, want) {
		t.Errorf("tools %q", names)
	}
	for _, row := range []struct {
		tool, want string
		isError    bool
	}{
		{"echo", `{"z":"hi"}`, false},
		{"fail", "it did not work", true},
		{"crash", "the tool crash crashed: runtime error: invalid memory address or nil pointer dereference", true},
		{"echo", `{"z":"hi"}`, false},
	} {
		r, err := callWith(t, c, row.tool, map[string]any{"z": "hi"})
		if err != nil {
			t.Fatalf("%s: %v", row.tool, err)
		}
		if text := r.Content[0].(mcp.TextContent).Text; text != row.want || r.IsError != row.isError {
			t.Errorf("%s: %q %v", row.tool, text, r.IsError)
		}
	}
	if _, err := callWith(t, c, "nothing", nil); err == nil || !strings.Contains(err.Error(), "tool 'nothing' not found") {
		t.Errorf("an unknown tool: %v", err)
	}
}
