package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// combination is how a background job speaks to the main session and to the owner.
type combination struct {
	mode     string
	ping     bool
	isolated bool
}

func (m combination) String() string {
	return fmt.Sprintf("%s ping=%v isolated=%v", m.mode, m.ping, m.isolated)
}

func (m combination) job() string {
	return fmt.Sprintf("---\nid: it\ncron: \"0 9 * * *\"\ndescription: The job\nbackground: true\nisolated: %v\nupdate-main-session: %s\nallow-ping: %v\n---\nDo it.\n",
		m.isolated, m.mode, m.ping)
}

// combinations are the sixteen that there are; outside of CI the one that has most tools of its own and must report.
func combinations() (list []combination) {
	for _, mode := range []string{"always", "on_ping", "freely", "blocked"} {
		for i := range 4 {
			list = append(list, combination{mode, i&1 == 0, i&2 != 0})
		}
	}
	if testkit.Full(1, 0) == 0 {
		list = []combination{{"always", true, true}}
	}
	return list
}

// shared is what the main conversation and its branches are shown.
const shared = "Agent Bash Edit Glob Grep Read WebFetch WebSearch Write add_reminder ask_owner cancel_reminder compact_session " +
	"enter_fork exit_fork follow_up_chain list_reminders ping_user report_updates save_context search_docs send_file skill update_names"

// tools is what a job of this combination is shown.
func (m combination) tools() string {
	if !m.isolated {
		return shared
	}
	names := []string{"Bash", "Glob", "Grep", "Read", "add_reminder", "cancel_reminder", "list_reminders"}
	if m.ping {
		names = append(names, "ask_owner", "ping_user", "send_file")
	}
	if m.mode != "blocked" {
		names = append(names, "report_updates")
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// offered is the names of the tools of a request, ours without their prefix, sorted as the command sends them.
func offered(q anthropicapi.Request) string {
	return strings.ReplaceAll(strings.Join(q.ToolNames(), " "), "mcp__ollim__", "")
}

// attempts is what an agent may come upon that sends two messages, reports nothing and tries the rest, and what it is told.
func (m combination) attempts() []attempt {
	ping := attempt{tool: "mcp__ollim__ping_user", input: map[string]any{"message": "look here"}, want: allowed, says: "Sent."}
	second := attempt{tool: "mcp__ollim__ping_user", input: map[string]any{"message": "and here"}, want: refused, says: "This run has already sent its one message."}
	if !m.ping {
		ping.want, ping.says = refused, "Pings are disabled for this task (allow-ping: false)."
		second.says = ping.says
	}
	list := []attempt{
		ping, second,
		{tool: "mcp__ollim__compact_session", input: map[string]any{"instructions": "all"}, want: refused, says: "compact_session is for persistent routine sessions only."},
		{tool: "mcp__ollim__follow_up_chain", input: map[string]any{"minutes_from_now": 5}, want: refused, says: "follow_up_chain is for reminders with max-chain only"},
		{tool: "mcp__ollim__update_names", input: map[string]any{"bot_name": "Rex"}, want: refused, says: "update_names is for the main conversation only."},
		{tool: "mcp__ollim__skill", input: map[string]any{"name": "x"}, want: refused, says: "This run has no skills."},
	}
	if m.mode == "blocked" {
		list = append(list, attempt{tool: "mcp__ollim__report_updates", input: map[string]any{"message": "psst"}, want: refused, says: "Reporting is disabled for this task (update-main-session: blocked)."})
	}
	shown := strings.Fields(m.tools())
	for i, a := range list {
		if !slices.Contains(shown, strings.TrimPrefix(a.tool, "mcp__ollim__")) {
			list[i].want, list[i].says = unknown, "No such tool available"
		}
	}
	return list
}

// ask lets the model use one tool after the other, and then end its turn again and again.
func (c *command) ask(api *anthropicapi.Server, attempts []attempt, mark string) {
	for i, a := range attempts {
		api.Reply(anthropicapi.Reply{ToolUses: []anthropicapi.ToolUse{{ID: fmt.Sprintf("%s_%d", mark, i), Name: a.tool, Input: a.input}}})
	}
	api.Reply(anthropicapi.Reply{Text: "I am done."})
}

func (c *command) answers(requests []anthropicapi.Request, attempts []attempt, mark string) {
	c.t.Helper()
	results, verdicts := map[string]anthropicapi.Block{}, c.verdicts()
	for _, q := range requests {
		for _, r := range q.ToolResults() {
			results[r.ToolUseID] = r
		}
	}
	for i, a := range attempts {
		id := fmt.Sprintf("%s_%d", mark, i)
		got, answered := results[id]
		if !answered {
			c.t.Errorf("%s: no result", a.tool)
			continue
		}
		c.t.Logf("%s: %q", a.tool, got.ResultText)
		a.check(c.t, a.tool, got, verdicts[id])
	}
}

// ended is the end of the newest run's record.
type ended struct {
	Outcome string
	Pings   int
	Reports int
	Turns   int
	Error   string
}

func (c *command) ended() (e ended) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.last(), "run.json"))
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		c.t.Error(err)
	}
	return e
}

func (c *command) nudges() (n int) {
	for _, e := range c.events() {
		if e.Type == "nudge" {
			n++
		}
	}
	return n
}

// TestModesOnClaude: what each combination is shown, what it is told when it asks for more, how often it is reminded of its
// report, and how its run ends: once by an agent that never reports, once by one that does when it is reminded.
func TestModesOnClaude(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	for _, m := range combinations() {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			c, api := withClaude(t)
			c.ok("config", "set", "delivery.command", "sh", "-c", "cat >> received.txt")
			c.write("routines/it.md", m.job())
			m.neverReports(c, api)
			if testkit.Full(1, 0) == 1 && (m.mode == "always" || m.mode == "on_ping" && m.ping) {
				m.reportsWhenReminded(c, api)
			}
		})
	}
}

func (m combination) neverReports(c *command, api *anthropicapi.Server) {
	c.t.Helper()
	attempts, want := m.attempts(), ended{Outcome: "ok", Turns: 1}
	if m.ping {
		want.Pings = 1
	}
	nudges, exit := 0, 0
	if m.mode == "always" || m.mode == "on_ping" && m.ping {
		nudges, exit, want.Outcome, want.Error = 2, 1, "unreported", "the agent did not report"
	}
	c.ask(api, attempts, "mute")
	c.fails(exit, "fire", "it")
	requests := api.Requests()
	if got := offered(requests[0]); got != m.tools() {
		c.t.Errorf("shown:\n%s\nwant:\n%s", got, m.tools())
	}
	c.answers(requests, attempts, "mute")
	if len(requests) != len(attempts)+1+nudges || c.nudges() != nudges {
		c.t.Errorf("%d requests, %d nudges, want %d", len(requests)-len(attempts)-1, c.nudges(), nudges)
	}
	reminder := "You sent the owner something but did not report it."
	if m.mode == "always" {
		reminder = "You must call `report_updates` before this run ends."
	}
	for _, q := range requests[len(attempts)+1:] {
		if !strings.Contains(q.LastUserText(), reminder) {
			c.t.Errorf("reminded by %q", q.LastUserText())
		}
	}
	if got := c.ended(); got != want {
		c.t.Errorf("%+v, want %+v", got, want)
	}
	pending := c.ok("updates", "pop")
	if fallback := strings.Contains(pending, "The job ran but did not report what it did."); fallback != (m.mode == "always") || strings.Count(pending, "\n") > 1 {
		c.t.Errorf("pending updates: %q", pending)
	}
	received, _ := os.ReadFile(filepath.Join(c.data, "received.txt"))
	if bytes.Contains(received, []byte("look here")) != m.ping || bytes.Contains(received, []byte("and here")) {
		c.t.Errorf("received: %q", received)
	}
}

func (m combination) reportsWhenReminded(c *command, api *anthropicapi.Server) {
	c.t.Helper()
	before, want := len(api.Requests()), ended{Outcome: "ok", Reports: 1, Turns: 1}
	if m.ping {
		api.Reply(anthropicapi.Use("mcp__ollim__ping_user", map[string]string{"message": "look here"}))
		want.Pings = 1
	}
	api.Reply(anthropicapi.Reply{Text: "I am done."}, anthropicapi.Use("mcp__ollim__report_updates", map[string]string{"message": "it is well"}), anthropicapi.Reply{Text: "Reported."})
	c.ok("fire", "it")
	if n := len(api.Requests()) - before; n != 3+want.Pings || c.nudges() != 1 {
		c.t.Errorf("%d requests and %d nudges", n, c.nudges())
	}
	if got := c.ended(); got != want {
		c.t.Errorf("%+v, want %+v", got, want)
	}
	if got := c.ok("updates", "pop"); strings.Count(got, "\n") != 1 || !strings.Contains(got, "\tit is well\n") {
		c.t.Errorf("pending updates: %q", got)
	}
}

// prefix is what the model's cache of a request begins with: the tools and the system prompt.
func prefix(t *testing.T, q anthropicapi.Request) string {
	t.Helper()
	var body struct{ Tools, System json.RawMessage }
	if err := json.Unmarshal(q.Raw, &body); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(body.Tools)+"\n"+string(body.System), `,"ttl":"1h"`, "") // by its gaps, and no part of what is cached
}

// same says where two texts part.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	t.Errorf("%s is another from byte %d on:\n%.300s\nnot\n%.300s", what, at, got[max(0, at-60):], want[max(0, at-60):])
}

// TestPromptCacheHolds: every kind of branch begins its requests as main does, byte for byte, whatever happened to the files
// meanwhile; what works alone does not. TestMainConversationOnClaude shows it for the branches that are made most.
func TestPromptCacheHolds(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	git(t, c.data, "init", "-q")
	c.write("IDENTITY.md", "You are Rex.\n")
	c.put("agents/helper.md", "---\ndescription: Helps.\n---\nHELPER: help.\n")
	c.put("skills/stocks/SKILL.md", "---\nname: stocks\ndescription: Stocks.\n---\nLook at them.\n")
	for name, flags := range map[string][]string{
		"plain": nil, "wide": {"--allowed-tools", "Bash(git log *)", "--update-main-session", "blocked", "--skills", "stocks", "--dirs", "rw:" + t.TempDir()},
		"sub": {"--subagent", "helper"}, "alone": {"--isolated"}, "inmain": {"--background=false"}, "steady": {"--session", "persistent"},
	} {
		c.ok(append(append([]string{"routine", "add", name, "--id", name, "--cron", "0 9 * * *", "--background"}, flags...), "Look around.")...)
	}
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "as you wish"} })
	c.ok("chat", "my cat is called Momo")
	for _, name := range []string{"sub", "wide", "plain", "inmain"} {
		c.put("tasks/of-"+name+".md", "new\n")
		c.ok("fire", name)
	}
	git(t, c.data, "add", "tasks")
	c.ok("chat", "and?")
	requests := api.Requests()
	sameBeginnings(t, requests)
	if got := requests[1].LastUserText(); !strings.HasPrefix(got, "[routine-bg:sub]") || !requests[1].Has("Momo") {
		t.Errorf("the first branch: %q", got)
	}

	for _, name := range []string{"alone", "steady"} {
		c.ok("fire", name)
		q, own := lastRequest(t, api), (combination{"on_ping", true, true}).tools()
		if name == "steady" {
			own = strings.Replace(own, "cancel_reminder", "cancel_reminder compact_session", 1)
		}
		if got := offered(q); got != own {
			t.Errorf("%s is shown:\n%s\nwant:\n%s", name, got, own)
		}
		if strings.Contains(q.System, "You are Rex.") || !strings.Contains(q.System, "You work alone") || q.Has("Momo") {
			t.Errorf("%s: the system prompt is %s", name, q.System)
		}
	}
}

// put writes a file and makes the directory that it is in.
func (c *command) put(name, text string) {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(c.data, name)), 0o700); err != nil {
		c.t.Fatal(err)
	}
	c.write(name, text)
}

// date is how claude tells the day, which may end between two requests.
var date = regexp.MustCompile(`date is \d{4}-\d\d-\d\d`)

func said(q anthropicapi.Request) (texts []string) {
	for _, m := range q.Messages {
		for _, b := range m.Content {
			texts = append(texts, m.Role+" "+b.Type+" "+date.ReplaceAllString(b.Text, "date is today"))
		}
	}
	return texts
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v: %s", args, err, out)
	}
}

// TestShownButRefused: what a branch of main is shown for the sake of the cache and may not use is refused in words that it
// can act on, and it goes on.
func TestShownButRefused(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	h := newFixture(t)
	// Where the owner's profile fails, the command gives each command of the agent a login shell, for which /etc/profile sets PATH.
	h.place(filepath.Join(h.home, ".bashrc"), "exit 1\n", 0o600)
	h.write("routines/silent.md", "---\nid: silent\ncron: \"0 9 * * *\"\nbackground: true\nallow-ping: false\nupdate-main-session: blocked\n---\nBe quiet.\n")
	no := func(tool, says string, want fate, pairs ...string) attempt {
		input := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			input[pairs[i]] = pairs[i+1]
		}
		return attempt{tool: tool, input: input, want: want, says: says}
	}
	const notHere = ": this tool is not allowed here"
	public := read("routines/open.md", allowed)
	public.says = "PUBLIC"
	h.try([]attempt{
		public, // also because the command wants a file to be read before it asks whether it may be edited
		no("Write", "Write"+notHere, denied, "file_path", "tasks/new.md", "content", "mine"),
		no("Edit", "Edit"+notHere, denied, "file_path", "routines/open.md", "old_string", "PUBLIC", "new_string", "mine"),
		no("WebFetch", "WebFetch"+notHere, denied, "url", "https://example.org", "prompt", "what"),
		no("WebSearch", "WebSearch"+notHere, denied, "query", "what is it"),
		no("Agent", "Agent"+notHere, denied, "description", "look", "prompt", "look", "subagent_type", "general-purpose"),
		no("Bash", "matches none of the allowed patterns: Bash(ollim help), Bash(ollim tasks *)", denied, "command", "ollim updates list", "description", "look"),
		no("mcp__ollim__ping_user", "Pings are disabled for this task", refused, "message", "psst"),
		no("mcp__ollim__send_file", "Pings are disabled for this task", refused, "path", "routines/open.md"),
		no("mcp__ollim__report_updates", "Reporting is disabled for this task", refused, "message", "psst"),
		no("mcp__ollim__skill", "This run has no skills.", refused, "name", "stocks"),
		no("mcp__ollim__search_docs", "This run may not use search_docs.", refused, "query", "ping"),
		no("mcp__ollim__update_names", "for the main conversation only", refused, "bot_name", "Rex"),
		bash("ollim help", allowed),
	}, "fire", "silent")
	if got := h.ok("updates", "list"); strings.Contains(got, "psst") {
		t.Errorf("pending updates: %q", got)
	}
	if q := h.api.Requests()[0]; offered(q) != shared || strings.Contains(q.LastUserText(), "report_updates") {
		t.Errorf("shown %s, told %q", offered(q), q.LastUserText())
	}
}
