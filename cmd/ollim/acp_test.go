package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/agentapi"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// move is what the model of a test does next: it uses a tool, or else it says a text.
type move struct {
	tool  string // shell, or a tool of ollim's server
	input map[string]string
	text  string
	read  int // tokens that the model is said to have read; 0: as many as there are

	status int // of HTTP, instead of an answer
}

func shell(line string) move { return move{tool: "shell", input: map[string]string{"command": line}} }

// brain is a model service of a test that makes moves in order. After the last one it says "ok".
type brain struct {
	mu    sync.Mutex
	moves []move
	down  int                      // status of HTTP of every answer; 0: the service works
	asked []func(text string) bool // whether each request has a text
}

func (b *brain) plan(moves ...move) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.moves, b.asked = moves, nil
}

// next returns the answer to a request.
func (b *brain) next(has func(string) bool) move {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, has)
	if b.down > 0 {
		return move{status: b.down}
	}
	if len(b.moves) == 0 {
		return move{text: "ok"}
	}
	m := b.moves[0]
	b.moves = b.moves[1:]
	return m
}

// knew reports whether the last request has all texts.
func (b *brain) knew(texts ...string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asked) > 0 && !slices.ContainsFunc(texts, func(text string) bool { return !b.asked[len(b.asked)-1](text) })
}

func (b *brain) requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.asked)
}

// guest is ollim with a real agent as its engine, over a service of the test.
type guest struct {
	*command
	*brain
	name string
	key  string // variable of its key
	env  []string
	argv []string
	url  string // of its service
}

// keyOfAgent is the key of the service of a test, and lookForKey a script that looks for it where a command of an agent could: in the environment
// and the arguments of processes, and in the files of its session and its settings.
const (
	keyOfAgent = "k-test-of-the-owner"
	lookForKey = `#!/bin/sh
{ env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; find "$PWD" "$HOME" -type f -exec cat {} +; } 2>/dev/null |
	tr '\0' '\n' | sed 's/^OLLIM_RUN=.*/a run/' | grep -a -x -o -e 'a run' -e '.*k-test-of-[t]he-owner.*' | sort -u | sed 's/^/saw: /'
`
)

// agentsAtOnce keeps the starts of real agents short, which take seconds of processor time each.
var agentsAtOnce = make(chan struct{}, 2)

// takeTurn waits until fewer real agents are tested than may be at once. The turn ends with the test.
func takeTurn(t *testing.T) {
	t.Helper()
	agentsAtOnce <- struct{}{}
	t.Cleanup(func() { <-agentsAtOnce })
}

// withAgent configures an agent that speaks ACP.
func withAgent(t *testing.T, name string) *guest {
	t.Helper()
	takeTurn(t)
	g := &guest{command: newCommand(t), brain: &brain{}, name: name}
	switch name {
	case "opencode":
		g.opencode()
	case "codex":
		api := g.serve("mcp__ollim/", "exec_command", func(line string) map[string]any {
			return map[string]any{"cmd": line, "sandbox_permissions": "require_escalated", "justification": "it is asked for"}
		})
		g.key, g.env, g.argv = "OPENAI_API_KEY", []string{"OPENAI_BASE_URL=" + api.URL() + "/v1"}, agentapi.Command(t, "codex-acp")
	case "gemini":
		api := g.serve("mcp_ollim_", "run_shell_command", func(line string) map[string]any { return map[string]any{"command": line, "description": "x"} })
		g.key, g.env, g.argv = "GEMINI_API_KEY", []string{"GOOGLE_GEMINI_BASE_URL=" + api.URL()}, agentapi.Command(t, "gemini", "--acp", "-m", "gemini-2.5-flash")
	}
	g.is(keyOfAgent, g.argv...)
	g.ok("config", "set", "engine", "acp:"+name)
	g.ok("config", "set", "quiet", "none")
	g.ok("config", "set", "models", "gemini-2.5-flash in=1 out=4")
	g.ok("config", "set", "delivery.command", "sh", "-c", "cat >> received.txt")
	g.write("look", lookForKey)
	if err := os.Chmod(filepath.Join(g.data, "look"), 0o700); err != nil {
		t.Fatal(err)
	}
	g.ok("routine", "add", "story", "--cron", "@yearly", "--background", "--isolated", "--allowed-tools", "Bash(touch *)", "--allowed-tools", "Bash(sleep *)", "--allowed-tools", "Bash(./look)", "Do the story.")
	g.write("routines/limited.md", "---\nid: limited\ncron: \"@yearly\"\nbackground: true\nisolated: true\nmax-cost: 0.05\nnetwork: none\n---\nDo what is dear.\n")
	g.ok("routine", "add", "daily", "--id", "daily", "--cron", "@yearly", "--background", "--session", "persistent", "Tell of the day.")
	return g
}

// is sets the key and the command.
func (g *guest) is(key string, argv ...string) {
	g.t.Helper()
	g.ok(append([]string{"config", "set", "acp." + g.name + ".command"}, argv...)...)
	g.ok(append([]string{"config", "set", "acp." + g.name + ".env", g.key + "=" + key}, g.env...)...)
}

func (g *guest) serve(server, tool string, input func(line string) map[string]any) *agentapi.Server {
	api := agentapi.New(g.t)
	g.url = api.URL()
	api.Handle(func(q agentapi.Request) agentapi.Reply {
		switch m := g.next(q.Has); m.tool {
		case "":
			return agentapi.Reply{Text: m.text, Status: m.status}
		case "shell":
			return agentapi.Use(tool, input(m.input["command"]))
		default:
			r := agentapi.Use(server+m.tool, m.input)
			r.Usage = agentapi.Usage{In: m.read, Out: min(m.read, 1)}
			return r
		}
	})
	return api
}

func (g *guest) opencode() {
	g.t.Helper()
	api := anthropicapi.New(g.t)
	g.url = api.URL()
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if q.Key() == "wrong" {
			return anthropicapi.Reply{Status: 401}
		}
		switch m := g.next(q.Has); m.tool {
		case "":
			return anthropicapi.Reply{Text: m.text, Status: m.status}
		case "shell":
			return anthropicapi.Use("bash", map[string]string{"command": m.input["command"], "description": "x"})
		case "read":
			return anthropicapi.Use("read", m.input)
		default:
			r := anthropicapi.Use("ollim_"+m.tool, m.input)
			r.Usage = anthropicapi.Usage{In: m.read, Out: min(m.read, 1)}
			return r
		}
	})
	g.key, g.env, g.argv = "ANTHROPIC_API_KEY", []string{"ANTHROPIC_BASE_URL=" + api.URL()}, agentapi.Command(g.t, "opencode", "acp")
}

// gone makes the agent's service one that refuses connections.
func (g *guest) gone() {
	g.t.Helper()
	const nobody = "http://127.0.0.1:9" // the port of a service that no machine has any more
	for i, entry := range g.env {
		g.env[i] = strings.ReplaceAll(entry, g.url, nobody)
	}
	g.is(keyOfAgent, g.argv...)
}

// TestAgents is each agent of a profile, sealed, through what can happen to a run.
func TestAgents(t *testing.T) {
	t.Parallel()
	agentapi.InCI(t)
	for _, name := range []string{"opencode", "codex", "gemini"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := withAgent(t, name)
			t.Run("tools", g.tools)
			if name != "opencode" { // whose modes TestModesOnOpencode shows
				t.Run("persistent", g.persistent)
			}
			if name != "opencode" {
				t.Run("fork", g.fork)
			}
			t.Run("stopped", func(t *testing.T) { g.ended(t, syscall.SIGTERM) })
			t.Run("killed", func(t *testing.T) { g.ended(t, syscall.SIGKILL) })
			t.Run("failures", g.failures)
		})
	}
}

// fire fires a job. If that fails, the test shows what happened in it.
func (g *guest) fire(t *testing.T, job string) {
	t.Helper()
	var errOut bytes.Buffer
	cmd := g.cmd("fire", job)
	cmd.Stderr = &errOut
	if err := cmd.Run(); err != nil {
		log, _ := g.cmd("run", "log", "last").Output()
		t.Errorf("fire %s: %v: %s\n%s", job, err, errOut.String(), log)
	}
}

// tools: allowed commands and ollim's tools work, a refused command is not executed, and the kernel refuses a write elsewhere.
func (g *guest) tools(t *testing.T) {
	outside, marker := filepath.Join(t.TempDir(), "outside"), filepath.Join(g.data, "notes.md")
	if err := testkit.WriteFile(marker, []byte("here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.plan(
		shell("touch "+outside),
		move{tool: "ping_user", input: map[string]string{"message": "look at oil"}},
		move{tool: "report_updates", input: map[string]string{"message": "oil broke 75"}},
		shell("./look"),
		shell("rm "+marker),
		move{text: "The story is told."},
		move{text: "The story is told."}, // of an agent whose turn has ended with the refusal
	)
	g.fire(t, "story")
	if !g.knew("saw: a run") || g.knew(keyOfAgent) {
		t.Error("a command has not looked for the key, or has found it")
	}
	if kept := strings.Count(g.ok("run", "show", "--requests", "--json", "last"), "\n"); kept != g.requests() {
		t.Errorf("%d of %d requests are kept", kept, g.requests())
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a command has written outside")
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error("a refused command was executed")
	}
	var r struct {
		Outcome, Text   string
		Pings, Reports  int
		Tool_calls      int //nolint:revive // a key of the record
		Sealed          any
		Usage           struct{ In, Out int }
		Engine, Version string
	}
	if err := json.Unmarshal([]byte(g.ok("run", "show", "last")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Outcome != "ok" || r.Pings != 1 || r.Reports != 1 || r.Sealed == nil || r.Usage.In == 0 || !strings.Contains(r.Text, "The story is told.") {
		t.Errorf("%+v\n%s", r, g.ok("run", "log", "last"))
	}
	if !strings.Contains(g.read("received.txt"), "look at oil") || !strings.Contains(g.ok("update", "list"), "oil broke 75") {
		t.Error("the message or the report is missing")
	}
	log := g.ok("run", "log", "last")
	if !strings.Contains(log, "verdict denied") && !strings.Contains(log, "refused") || !strings.Contains(log, "ermission denied") {
		t.Errorf("the record lacks the refusals:\n%s", log)
	}
	g.nothingLeft()
	if out, _ := g.cmd("doctor").Output(); !strings.Contains(string(out), "acp:"+g.name+": ") || !strings.Contains(string(out), ", asks before ") {
		t.Errorf("doctor:\n%s", out)
	}
}

// persistent: fires have what was said in earlier ones.
func (g *guest) persistent(t *testing.T) {
	for _, say := range []string{"Rain.", "Sun.", "Snow."} {
		g.plan(move{text: say})
		g.fire(t, "daily")
		if n := g.requests(); n != 1 {
			t.Errorf("%d requests", n)
		}
	}
	if !g.knew("Tell of the day.", "Rain.", "Sun.") {
		t.Error("the third fire lacks the answers of the others")
	}
	if g.name != "gemini" { // which is given its session by quoting
		return
	}
	g.plan(move{text: "It rained."})
	g.ok("session", "compact", "routine:daily", "keep the weather")
	if !g.knew("Rain.", "Sun.", "Snow.") {
		t.Error("the summary is of another session")
	}
	g.plan(move{text: "Hail."})
	g.fire(t, "daily")
	if !g.knew("It rained.") || g.knew("Snow.") {
		t.Error("the session is not compacted")
	}
}

// fork: a fire in a branch of the main session has what was said there, and main does not have the branch.
func (g *guest) fork(t *testing.T) {
	g.ok("routine", "add", "branch", "--cron", "@yearly", "--background", "Look around.")
	g.plan(move{text: "A fine name."})
	g.ok("chat", "my cat is called Momo")
	g.plan(move{text: "Looked."})
	g.fire(t, "branch")
	if !g.knew("Momo", "A fine name.", "Look around.") {
		t.Errorf("the branch lacks the main session:\n%s", g.ok("run", "log", "last"))
	}
	g.plan(move{text: "Yes."})
	g.ok("chat", "do you remember?")
	if !g.knew("Momo") || g.knew("Looked.") {
		t.Error("the main session lacks what was said, or has the branch")
	}
}

// ended: a run that is stopped or killed leaves no process and no lock.
func (g *guest) ended(t *testing.T, sig syscall.Signal) {
	g.plan(shell("sleep 300"))
	var errOut bytes.Buffer
	cmd := g.cmd("fire", "story")
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command of the agent runs", func() bool { return len(g.processes("sleep\x00300")) > 0 })
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	if code := status(cmd.Wait()); sig == syscall.SIGTERM && code != 128+int(sig) {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
	eventually(t, "no process is left", func() bool { return len(g.processes("")) == 0 })
	if sig == syscall.SIGTERM {
		g.limited(t)
		return
	}
	g.plan(move{text: "Again."})
	g.fire(t, "story")
}

// limited: a cost limit ends the run before the next request. The agent reaches nothing but the gateway.
func (g *guest) limited(t *testing.T) {
	g.plan(move{tool: "report_updates", input: map[string]string{"message": "it was dear"}, read: 100_000})
	g.complains(1, "cost limit reached", "fire", "limited")
	if n := g.requests(); n != 1 || g.outcome() != "failed" {
		t.Errorf("%d requests, outcome %s", n, g.outcome())
	}
	g.nothingLeft()
}

// failures: a key that is refused, a service that is away, an agent that is missing, and one that does not take the mode in which it asks.
func (g *guest) failures(t *testing.T) {
	g.is("wrong", g.argv...)
	g.complains(69, "key|KEY", "fire", "story")
	g.is(keyOfAgent, filepath.Join(t.TempDir(), "none"))
	g.fails(69, "fire", "story")
	moves, said := []move{shell("touch " + filepath.Join(g.data, "unasked"))}, "ask"
	if g.name == "opencode" { // also a use that fails is one that was not asked for
		moves = append([]move{{tool: "read", input: map[string]string{"filePath": filepath.Join(g.data, "none")}}}, moves...)
		said = "the tool read without asking"
	}
	g.plan(moves...)
	g.is(keyOfAgent, g.careless(t)...)
	g.complains(69, said, "fire", "story")
	if out, _ := g.cmd("doctor").Output(); g.name != "opencode" && !strings.Contains(string(out), "in which it asks") {
		t.Errorf("doctor does not notice the mode:\n%s", out)
	}
	if g.name != "opencode" && g.requests() > 0 { // which shows it by a tool that it has used
		t.Error("the model was asked")
	}
	g.nothingLeft()
}

// careless returns a command in which the agent begins in a mode that asks nothing, and leaves it on no request.
func (g *guest) careless(t *testing.T) []string {
	t.Helper()
	line := map[string]string{
		"opencode": `OPENCODE_CONFIG_CONTENT=$(printf %s "$OPENCODE_CONFIG_CONTENT" | sed 's/"ask"/"allow"/g') exec "$0" "$@"`,
		"codex":    `export INITIAL_AGENT_MODE=agent-full-access; sed -u 's/"modeId":"read-only"/"modeId":"none"/' | "$0" "$@"`,
		"gemini":   `sed -u 's/"modeId":"default"/"modeId":"none"/' | "$0" "$@" --approval-mode yolo`,
	}[g.name]
	return append([]string{"/bin/sh", "-c", line}, g.argv...)
}
