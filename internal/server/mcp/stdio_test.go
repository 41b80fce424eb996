package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

const asServer = "OLLIM_TEST_MCP_SERVER=1"

func TestARealClientOverStdio(t *testing.T) {
	c, err := client.NewStdioMCPClient(os.Args[0], []string{asServer})
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	everything(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestSignalsAndEndOfInputInMidCall(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		end  func(*exec.Cmd, io.Closer) error
		says string
		code int
	}{
		"interrupt":    {func(c *exec.Cmd, _ io.Closer) error { return c.Process.Signal(os.Interrupt) }, "END context canceled", 1},
		"end of input": {func(_ *exec.Cmd, in io.Closer) error { return in.Close() }, "END of input", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(os.Environ(), asServer)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			in, _ := cmd.StdinPipe()
			out, _ := cmd.StdoutPipe()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			io.WriteString(in, request(1, "sleep", "{}")+"\n"+ping+"\n")
			if !lines.Scan() || !sameJSON(t, lines.Text(), pong) {
				t.Fatal(lines.Text())
			}
			if err := row.end(cmd, in); err != nil {
				t.Fatal(err)
			}
			var rest []string
			for lines.Scan() {
				rest = append(rest, lines.Text())
			}
			if len(rest) != 1 || !strings.Contains(rest[0], `"isError":true`) {
				t.Errorf("the call's answer: %q", rest)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != row.code || strings.TrimSpace(stderr.String()) != row.says {
				t.Errorf("exit %d, %q", code, stderr.String())
			}
		})
	}
}

// TestTheRealClaude lets the real command list the tools and call some of them; the model is a script.
func TestTheRealClaude(t *testing.T) {
	command := anthropicapi.Claude(t)
	api := anthropicapi.New(t)
	use := func(name string, input any) anthropicapi.Reply {
		return anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{Name: "mcp__ollim__" + name, Input: input}}}
	}
	api.Reply(use("echo", map[string]any{"z": "through"}), use("crash", nil), use("long", nil), anthropicapi.Reply{Text: "the end"})

	events := runClaude(t, command, anthropicapi.ClaudeEnv(t, api))
	first, last := events[0], events[len(events)-1]
	if len(first.Servers) != 1 || first.Servers[0].Name != "ollim" || first.Servers[0].Status != "connected" {
		t.Errorf("servers of the init event: %+v", first.Servers)
	}
	if !slices.Contains(first.Tools, "mcp__ollim__ping_user") || last.Result != "the end" || last.IsError {
		t.Errorf("tools %q, result %+v", first.Tools, last)
	}
	requests := api.Requests()
	checkOffer(t, requests[0])
	var results []anthropicapi.Block
	for _, q := range requests {
		results = append(results, q.ToolResults()...)
	}
	if len(results) != 3 {
		t.Fatalf("%d tool results: %+v", len(results), results)
	}
	if r := results[0]; r.ResultText != `{"z":"through"}` || r.IsError {
		t.Errorf("echo: %+v", r)
	}
	if r := results[1]; !strings.HasPrefix(r.ResultText, "the tool crash crashed: ") || !r.IsError {
		t.Errorf("crash: %+v", r)
	}
	if r := results[2]; r.IsError || len(r.ResultText) < maxText-100 || !strings.HasSuffix(r.ResultText, "more characters omitted]") {
		t.Errorf("long: %d characters: …%s", len(r.ResultText), r.ResultText[max(0, len(r.ResultText)-300):])
	}
}

func checkOffer(t *testing.T, q anthropicapi.Request) {
	t.Helper()
	for _, tool := range q.Tools {
		if tool.Name == "mcp__ollim__echo" {
			if tool.Description != "Says its input." || !sameJSON(t, string(tool.InputSchema), echoSchema) {
				t.Errorf("echo is offered to the model as %+v, %s", tool, tool.InputSchema)
			}
			return
		}
	}
	t.Errorf("the model is offered %q", q.ToolNames())
}

// event is what is read here of a line of claude's output.
type event struct {
	Type    string
	Subtype string
	Tools   []string
	Servers []struct{ Name, Status string } `json:"mcp_servers"`
	Result  string
	IsError bool `json:"is_error"`
}

// runClaude is the init event, whatever follows, and the result.
func runClaude(t *testing.T, command string, env []string) (events []event) {
	t.Helper()
	dir := t.TempDir()
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"ollim": map[string]any{
		"type": "stdio", "command": os.Args[0], "args": []string{}, "alwaysLoad": true,
		"env": map[string]string{"OLLIM_TEST_MCP_SERVER": "1"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, "-p", "--output-format", "stream-json", "--verbose", "--model", "claude-opus-4-8",
		"--setting-sources", "", "--strict-mcp-config", "--mcp-config", file, "--tools", "", "--permission-mode", "dontAsk",
		"--allowedTools", "mcp__ollim")
	cmd.Env, cmd.Dir, cmd.Stdin = slices.Concat(env, []string{"ENABLE_TOOL_SEARCH=false"}), dir, strings.NewReader("begin")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("claude: %v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if len(events) > 0 || e.Type == "system" && e.Subtype == "init" {
			events = append(events, e)
		}
	}
	if len(events) == 0 {
		t.Fatalf("no init event: %s", out)
	}
	return slices.DeleteFunc(events, func(e event) bool { return e.Subtype != "init" && e.Type != "result" })
}
