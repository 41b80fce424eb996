package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// complains runs a command that must fail as every command does: with that status and on standard error one line that the
// expression matches, with at most a hint behind it. Warnings may stand before it.
func (c *command) complains(want int, said string, args ...string) {
	c.t.Helper()
	var errOut bytes.Buffer
	cmd := c.cmd(args...)
	cmd.Stderr = &errOut
	got := status(cmd.Run())
	c.t.Logf("ollim %s: exit %d\n%s", strings.Join(args, " "), got, errOut.String())
	if got != want {
		c.t.Errorf("exit %d, want %d", got, want)
	}
	c.wellSaid(said, errOut.String())
}

func (c *command) wellSaid(said, text string) {
	c.t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for len(lines) > 1 && strings.HasPrefix(lines[0], "ollim: warning: ") {
		lines = lines[1:]
	}
	if len(lines) > 2 || len(lines) == 2 && !strings.HasPrefix(lines[1], "ollim: hint: ") {
		c.t.Errorf("want one line, and at most a hint: %q", lines)
	}
	if fault := faultOfLine(lines[0]); fault != "" {
		c.t.Errorf("%s: %q", fault, lines[0])
	}
	if !regexp.MustCompile(said).MatchString(lines[0]) {
		c.t.Errorf("no match for %q in %q", said, lines[0])
	}
}

// environ sets entries of the engine's environment anew, over those that withClaude has set; "" takes one away.
func (c *command) environ(changes map[string]string) {
	c.t.Helper()
	args := []string{"config", "set", "env"}
	for _, entry := range strings.Fields(c.ok("config", "get", "env")) {
		key, value, _ := strings.Cut(entry, "=")
		if changed, found := changes[key]; found {
			value = changed
		}
		if value != "" {
			args = append(args, key+"="+value)
		}
	}
	c.ok(args...)
}

// outcome is how the newest run ended, as its record says.
func (c *command) outcome() string {
	c.t.Helper()
	var r struct {
		Outcome  string
		Finished *time.Time
	}
	text, err := os.ReadFile(filepath.Join(c.last(), "run.json"))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || r.Finished == nil {
		c.t.Errorf("the record is not finished (%v): %s", err, text)
	}
	return r.Outcome
}

// nothingLeft: no process of the newest run is there.
func (c *command) nothingLeft() {
	c.t.Helper()
	if left := process.Carrying("OLLIM_RUN=" + filepath.Base(c.last())); len(left) > 0 {
		c.t.Errorf("processes left behind: %v", left)
	}
}

const mainJob = `---
id: digest
cron: "0 9 * * *"
description: The morning digest
timeout: 4s
---
Write the digest.
`

// failure is one thing that goes wrong under a foreground fire, which pops updates and whose failures the owner is told.
type failure struct {
	name     string
	ci       bool // only there
	set      func(*testing.T, *command, *anthropicapi.Server)
	status   int
	said     string
	outcome  string // "": failed
	began    bool   // the agent may have answered something, which uses up the updates: claude mostly prints what it has when it is stopped
	brief    bool   // the run may take 4 seconds only, as with outcome timeout
	requests int    // 0: any number
}

func failures() []failure {
	answer := func(r anthropicapi.Reply) func(*testing.T, *command, *anthropicapi.Server) {
		return func(_ *testing.T, _ *command, api *anthropicapi.Server) {
			api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return r })
		}
	}
	with := func(key, value string) func(*testing.T, *command, *anthropicapi.Server) {
		return func(_ *testing.T, c *command, _ *anthropicapi.Server) { c.environ(map[string]string{key: value}) }
	}
	return []failure{
		{name: "missing", status: 69, said: "/claude: no such file", set: func(t *testing.T, c *command, _ *anthropicapi.Server) {
			path := filepath.Join(t.TempDir(), "claude")
			if err := testkit.WriteFile(path, nil, 0o700); err != nil {
				t.Fatal(err)
			}
			c.ok("config", "set", "claude-code.command", path)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "not executable", status: 69, said: "permission denied", set: func(t *testing.T, c *command, _ *anthropicapi.Server) {
			path := filepath.Join(t.TempDir(), "claude")
			if err := testkit.WriteFile(path, nil, 0o700); err != nil {
				t.Fatal(err)
			}
			c.useClaude(path)
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "not logged in", status: 69, ci: true, said: "Not logged in", set: with("ANTHROPIC_API_KEY", "")},
		{name: "401", status: 69, said: "401", requests: 1, ci: true, set: answer(anthropicapi.Reply{Status: 401})},
		{name: "403", status: 69, said: "403", ci: true, set: answer(anthropicapi.Reply{Status: 403})},
		{name: "credit", status: 69, said: "(?i)credit", ci: true, set: answer(anthropicapi.Reply{Status: 400, Message: "Your credit balance is too low to access the Anthropic API."})},
		{name: "404", status: 69, said: "model", ci: true, set: answer(anthropicapi.Reply{Status: 404, Message: "model: claude-x"})},
		{name: "429 for ever", status: 69, ci: true, said: "the model service did not answer within 15s, the last try: .*429", brief: true, set: answer(anthropicapi.Reply{Status: 429})},
		{name: "529 for ever", status: 69, ci: true, said: "the model service did not answer within 15s, the last try: .*529", brief: true, set: answer(anthropicapi.Reply{Status: 529})},
		{name: "network refused", status: 69, said: "(?i)unable to connect|connection refused", ci: true, set: with("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")},
		{name: "silent", status: 124, said: "stopped after 4s", outcome: "timeout", ci: true, set: answer(anthropicapi.Reply{Text: "never", Fault: apiserver.Silent, After: 1})},
		{name: "mute", status: 124, said: "stopped after 4s", outcome: "timeout", ci: true, set: answer(anthropicapi.Reply{Fault: apiserver.Mute})},
		{name: "endless", status: 124, said: "stopped after 40s", outcome: "timeout", began: true, ci: true, set: answer(anthropicapi.Reply{Fault: apiserver.Endless, StreamDelay: 20 * time.Millisecond})},
		{name: "portal", status: 1, said: `malformed response \(HTTP 200\)`, ci: true, set: answer(anthropicapi.Reply{Fault: apiserver.WrongContentType})},
		{name: "always cut", status: 69, said: "engine unavailable: no answer from 127.0.0.1:[0-9]+: .*EOF", ci: true, set: answer(anthropicapi.Reply{Text: "half a word", Fault: apiserver.Cut, After: 4})},
		{name: "always malformed", status: 1, said: "API Error: .*JSON", ci: true, set: answer(anthropicapi.Reply{Text: "half a word", Fault: apiserver.Malformed, After: 4})},
		{name: "tool server dies", status: 69, said: "tool server is (failed|pending), not connected", set: func(_ *testing.T, c *command, _ *anthropicapi.Server) {
			c.wrap(swap("servers", `sed 's/"serve"/"swerve"/'`))
		}},
		{name: "no folder for sessions", status: 69, said: "cannot keep its sessions in /dev/null/claude", set: func(t *testing.T, c *command, api *anthropicapi.Server) {
			with("CLAUDE_CONFIG_DIR", "/dev/null/claude")(t, c, api)
			c.ok("config", "set", "seal", "off") // a sealed claude has a directory of its own
		}},
		{name: "crash", status: 1, said: "exit status 3.*oh no", set: func(_ *testing.T, c *command, _ *anthropicapi.Server) { c.wrap("echo oh no >&2; exit 3") }},
		{name: "says nothing", status: 1, said: "without a result", ci: true, set: func(_ *testing.T, c *command, _ *anthropicapi.Server) { c.wrap("exit 0") }},
	}
}

// TestFailures: each is one clear line, the right status, a finished record, and nothing is lost by it.
func TestFailures(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	for _, f := range failures() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if f.ci {
				anthropicapi.InCI(t)
			}
			c, api := withClaude(t)
			text := mainJob
			switch {
			case f.brief: // at least one try must end
				text = strings.Replace(mainJob, "4s", "15s", 1)
			case f.outcome != "timeout":
				text = strings.Replace(mainJob, "4s", "10m", 1)
			case f.began: // it must come to that
				text = strings.Replace(mainJob, "4s", "40s", 1)
			}
			c.write("routines/digest.md", text)
			c.ok("updates", "add", "wait for me")
			f.set(t, c, api)
			c.complains(f.status, f.said, "fire", "digest")
			want := f.outcome
			if want == "" {
				want = "failed"
			}
			if got := c.outcome(); got != want {
				t.Errorf("outcome %s, want %s", got, want)
			}
			pending := c.ok("updates", "list")
			began := slices.ContainsFunc(c.events(), func(e event) bool { return e.Type == "text" })
			if strings.Contains(pending, "wait for me") == began || began && !f.began {
				t.Errorf("pending updates: %q", pending)
			}
			if n := strings.Count(pending, "The morning digest"); n != 1 {
				t.Errorf("the owner is told %d times: %q", n, pending)
			}
			if n := len(api.Requests()); f.requests > 0 && n != f.requests {
				t.Errorf("%d requests, want %d", n, f.requests)
			}
			c.nothingLeft()
			api.Violations()
		})
	}
}

// TestFaultsThatPass: what the network does to one request, the run survives.
func TestFaultsThatPass(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	for name, replies := range map[string][]anthropicapi.Reply{
		"429 twice": {{Status: 429}, {Status: 429}},
		"529 twice": {{Status: 529}, {Status: 529}},
		"529 often": {{Status: 529}, {Status: 529}, {Status: 529}, {Status: 529}}, // more than the command itself tries
		"cut":       {{Text: "half a word", Fault: apiserver.Cut, After: 4}},
		"malformed": {{Text: "half a word", Fault: apiserver.Malformed, After: 4}},
		"hang up":   {{Fault: apiserver.HangUp}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "529 often" {
				anthropicapi.InCI(t)
			}
			c, api := withClaude(t)
			c.write("routines/digest.md", strings.Replace(mainJob, "4s", "10m", 1))
			c.ok("updates", "add", "wait for me")
			api.Reply(replies...)
			api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "the digest"} })
			if got := c.ok("fire", "--print", "digest"); !strings.Contains(got, "the digest") {
				t.Errorf("printed %q", got)
			}
			if got := c.ok("updates", "list"); strings.TrimSpace(got) != "" {
				t.Errorf("pending updates: %q", got)
			}
			if name == "529 often" && !testkit.CI() {
				return // the other tests go on with a session
			}
			main := strings.TrimSpace(c.ok("session", "id", "main"))
			c.ok("chat", "and?")
			if now := strings.TrimSpace(c.ok("session", "id", "main")); now != main {
				t.Errorf("main is %s, was %s", now, main)
			}
		})
	}
}

// TestSessionFailures: a first fire that does not reach the service, and a compaction at the end of a fire that fails.
// TestPersistentRoutineOnClaude shows what else goes wrong around a persistent session.
func TestSessionFailures(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	c.write("routines/daily-market.md", daily)
	c.environ(map[string]string{"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"})
	c.complains(69, "(?i)unable to connect|connection refused", "fire", "daily")
	begun := c.stored()
	c.environ(map[string]string{"ANTHROPIC_BASE_URL": api.URL()})
	c.ok("fire", "daily")
	first := c.stored()
	if q := api.Requests()[0]; begun != "" && begun != first || q.Has("Your earlier session is gone") {
		t.Errorf("session %s, then %s; the agent was told %q", begun, first, q.LastUserText())
	}

	api.CompactReply(anthropicapi.Reply{Status: 400, Message: "no"})
	api.Reply(anthropicapi.Use("mcp__ollim__compact_session", map[string]string{"instructions": "keep all"}), anthropicapi.Reply{Text: "ok"})
	c.complains(1, "(?i)compact", "fire", "daily")
	if now := c.stored(); now != first {
		t.Errorf("session %s, was %s before a compaction that failed", now, first)
	}
	api.CompactReply(anthropicapi.Reply{Text: "<summary>all of it</summary>"})
	c.ok("session", "compact", "routine:daily", "keep all")
	if c.stored() == first {
		t.Error("a compaction did not move the session")
	}
	api.Violations()
}

// variable is an entry of the engine's environment.
func (c *command) variable(name string) string {
	c.t.Helper()
	for _, entry := range strings.Fields(c.ok("config", "get", "env")) {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return value
		}
	}
	c.t.Fatalf("no %s", name)
	return ""
}

// TestSignals: an interrupt from the keyboard stops a run as SIGTERM does, which TestPersistentRoutineOnClaude sends.
func TestSignals(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	c.write("routines/daily-market.md", daily)
	api.Reply(anthropicapi.Reply{Text: "Oil stands at 71."})
	c.ok("fire", "daily")
	id := c.stored()
	stopped(t, c, api, syscall.SIGINT)
	api.Reply(anthropicapi.Reply{Text: "Still 71."})
	c.ok("fire", "daily")
	if last := lastRequest(t, api); c.stored() != id || !last.Has("Oil stands at 71.") {
		t.Errorf("session %s, was %s", c.stored(), id)
	}
	if v := api.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// TestOwnersLimits: spending, cost of one run, and pause, on the real command.
func TestOwnersLimits(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	c.write("routines/daily-market.md", daily)
	c.write("routines/dear.md", strings.NewReplacer("id: daily", "id: dear\nmax-cost: 0.05", "session: persistent\n", "").Replace(daily))
	expensive := anthropicapi.Use("mcp__ollim__report_updates", map[string]string{"message": "dear"})
	expensive.Usage = anthropicapi.Usage{In: 100_000, Out: 10_000}
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if len(q.ToolResults()) > 0 {
			return anthropicapi.Reply{Text: "done"}
		}
		return expensive
	})
	c.complains(1, "cost limit reached", "fire", "dear")
	c.nothingLeft()
	asked := len(api.Requests())

	c.ok("pause")
	c.complains(75, "paused", "fire", "daily")
	c.ok("resume")
	c.ok("config", "set", "spend.runs-per-day", "1")
	c.complains(77, "refused", "fire", "daily")
	c.complains(77, "refused", "fire", "daily")
	if n := strings.Count(c.ok("updates", "list"), "No automatic run starts"); n != 1 {
		t.Errorf("the owner is told of the limit %d times", n)
	}
	if n := len(api.Requests()); n != asked {
		t.Errorf("%d requests by runs that were held back", n-asked)
	}
}
