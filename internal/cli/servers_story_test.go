package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// notesServer is an MCP server in a few lines: a tool that returns its arguments and its token, one that ends the server, and one that no
// job of these tests may use.
const notesServer = `#!/bin/sh
echo "started $OLLIM_RUN" >>log/starts
while read -r line; do
	id=$(printf %s "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
	reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
	case $line in
	*'"initialize"'*)
		printf '%s\n' "$line" >>log/hello
		reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"notes","version":"1"}}' ;;
	*'"tools/list"'*) reply '{"tools":[{"name":"add","description":"Adds a note.","inputSchema":{"type":"object"}},{"name":"crash","inputSchema":{"type":"object"}},{"name":"wipe","inputSchema":{"type":"object"}}]}' ;;
	*'"name":"crash"'*) echo "bad luck with $TOKEN" >&2; exit 4 ;;
	*'"tools/call"'*) reply '{"content":[{"type":"text","text":"noted with '"$TOKEN"'"}]}' ;;
	esac
done
`

// newServersWorld is a world of the native engine with the server notes and a routine that may use two of its tools.
func newServersWorld(t *testing.T) (*world, *anthropicapi.Server) {
	t.Helper()
	w, api := newNativeWorld(t)
	w.writeProgram("servers/notes", notesServer)
	w.write("log/starts", "") // the only folder that it may write to
	w.secrets("mcp.TOKEN=hunter2hunter2\n")
	w.must("config", "set", "mcp-servers.notes.command", "servers/notes")
	w.must("config", "set", "mcp-servers.notes.env", "TOKEN=${mcp.TOKEN}")
	w.must("routine", "add", "write", "--cron", "0 9 * * *", "--background", "--isolated",
		"--allowed-tools", "mcp__notes__add", "--allowed-tools", "mcp__notes__crash", "--allowed-tools", "Write(./log/**)", "Note it.")
	return w, api
}

func (w *world) starts() int {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "log/starts"))
	if err != nil {
		return 0
	}
	return strings.Count(string(data), "started ")
}

// TestServerTools: a job uses the tools of a server that its patterns name, judged and recorded as all tools are. The secret is in the
// server's environment and nowhere else.
func TestServerTools(t *testing.T) {
	t.Parallel()
	w, api := newServersWorld(t)
	api.Reply(anthropicapi.Use("mcp__notes__add", map[string]string{"text": "milk"}), anthropicapi.Use("mcp__notes__wipe", nil), anthropicapi.Reply{Text: "done"})
	w.must("fire", "write")
	if hello, err := os.ReadFile(filepath.Join(w.dir, "log/hello")); err != nil || !strings.Contains(string(hello), `"clientInfo":{"name":"ollim","version":"development"}`) {
		t.Errorf("the server was told %s, %v", hello, err)
	}
	requests := api.Requests()
	offered := strings.Join(requests[0].ToolNames(), " ")
	if !strings.Contains(offered, "mcp__notes__add mcp__notes__crash") || strings.Contains(offered, "wipe") {
		t.Errorf("offered %s", offered)
	}
	if r := requests[1].ToolResults()[0]; r.ResultText != "noted with [secret]" || r.IsError {
		t.Errorf("got %+v", r)
	}
	if r := requests[2].ToolResults()[0]; !r.IsError {
		t.Errorf("wipe: %+v", r)
	}
	log := w.must("run", "log", "write", "--json")
	if !strings.Contains(log, `"verdict"`) || !strings.Contains(log, `mcp__notes__add`) || strings.Contains(log, "hunter2") {
		t.Errorf("the record: %s", log)
	}
	if names := w.holding(".", "hunter2hunter2"); len(names) > 0 {
		t.Errorf("the secret is in %q", names)
	}
	// a day's other runs know the tools, and start no server for them
	api.Reply(anthropicapi.Reply{Text: "nothing to note"})
	w.must("fire", "write")
	if n := w.starts(); n != 1 {
		t.Errorf("%d starts", n)
	}
	if last := api.Requests()[3]; !strings.Contains(strings.Join(last.ToolNames(), " "), "mcp__notes__add") {
		t.Errorf("offered %q", last.ToolNames())
	}
}

// TestServerNeedsApproval: of the definition, and of the program that it runs from the data directory.
func TestServerNeedsApproval(t *testing.T) {
	t.Parallel()
	w, api := newServersWorld(t)
	api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "done"} })
	for name, change := range map[string]func(){
		"definition": func() { w.must("config", "set", "mcp-servers.notes.env", "TOKEN=${mcp.TOKEN}", "MODE=all") },
		"program":    func() { w.writeProgram("servers/notes", notesServer+"# changed\n") },
	} {
		w.must("fire", "write")
		change()
		if r := w.run("fire", "write"); r.status != 77 || !strings.Contains(r.errOut, "not approved") || !strings.Contains(r.errOut, "mcp-servers") {
			t.Errorf("%s: %+v", name, r)
		}
		if out := w.must("check"); !strings.Contains(out, "waits for your approval") {
			t.Errorf("%s: check says %s", name, out)
		}
		w.approveJob("write")
	}
}

// TestDeadServer fails only what needs it, and is reported.
func TestDeadServer(t *testing.T) {
	t.Parallel()
	w, api := newServersWorld(t)
	w.must("config", "set", "mcp-servers.gone.command", "no-such-program")
	w.must("routine", "add", "both", "--cron", "0 9 * * *", "--background", "--isolated",
		"--allowed-tools", "mcp__notes__*", "--allowed-tools", "mcp__gone__*", "--allowed-tools", "Write(./log/**)", "Note it.")
	api.Reply(anthropicapi.Use("mcp__gone__unavailable", nil), anthropicapi.Use("mcp__notes__crash", nil), anthropicapi.Use("mcp__notes__add", nil), anthropicapi.Reply{Text: "done"})
	w.must("fire", "both")
	requests := api.Requests()
	for i, want := range []string{"no-such-program: not found in PATH", "the server has ended: exit status 4: bad luck with [secret]", "noted with [secret]"} {
		if r := requests[i+1].ToolResults()[0]; !strings.Contains(r.ResultText, want) || r.IsError != (i < 2) {
			t.Errorf("use %d: %+v, want %q", i, r, want)
		}
	}
	if log := w.must("run", "log", "both"); !strings.Contains(log, "server gone") || !strings.Contains(log, "server notes") {
		t.Errorf("the log: %s", log)
	}
	updates := w.must("updates", "list")
	if !strings.Contains(updates, "gone") || !strings.Contains(updates, "notes") || strings.Contains(updates, "hunter2") {
		t.Errorf("updates: %s", updates)
	}
	api.Reply(anthropicapi.Reply{Text: "done"})
	w.must("fire", "both")
	if again := w.must("updates", "list"); again != updates {
		t.Errorf("reported twice on one day: %s", again)
	}
}

// TestCheckServerWithoutCommand: a server that has neither command nor url is reported as a fault of the file, once.
func TestCheckServerWithoutCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("config.yaml", "mcp-servers:\n  notes: {command: []}\n")
	if r := w.run("check"); r.status != 65 || strings.Count(r.out+r.errOut, "notes") != 1 || !strings.Contains(r.out+r.errOut, "want a command or a url") {
		t.Errorf("%+v", r)
	}
}

// TestServerSecretMissing: the server is not started without it.
func TestServerSecretMissing(t *testing.T) {
	t.Parallel()
	w, api := newServersWorld(t)
	w.secrets("mcp.OTHER=hunter2hunter2\n")
	api.Reply(anthropicapi.Use("mcp__notes__add", nil), anthropicapi.Reply{Text: "done"})
	w.must("fire", "write")
	if r := api.Requests()[1].ToolResults()[0]; !r.IsError || !strings.Contains(r.ResultText, "the secret mcp.TOKEN is missing") {
		t.Errorf("got %+v", r)
	}
	if n := w.starts(); n != 0 {
		t.Errorf("%d starts", n)
	}
	if r := w.run("check"); r.status != 65 || !strings.Contains(r.out, "mcp.TOKEN") {
		t.Errorf("check says %+v", r)
	}
}

// TestDryRunStartsNoServer: it names the tools that are known.
func TestDryRunStartsNoServer(t *testing.T) {
	t.Parallel()
	w, api := newServersWorld(t)
	w.must("fire", "--dry-run", "write")
	if n := w.starts(); n != 0 {
		t.Errorf("%d starts", n)
	}
	api.Reply(anthropicapi.Reply{Text: "done"})
	w.must("fire", "write")
	if out := w.must("fire", "--dry-run", "write"); !strings.Contains(out, "mcp__notes__add") {
		t.Errorf("dry run: %s", out)
	}
}

// TestSubagentOnNative: a job is delegated to its subagent, which has a context of its own and at most the run's tools; its calls and its
// cost are in the run's record.
func TestSubagentOnNative(t *testing.T) {
	w, api := newNativeWorld(t)
	w.write("agents/helper.md", "---\nname: helper\ndescription: Helps.\ntools: Read, Bash\n---\nYou are the HELPER.\n")
	w.write("notes.md", "the sky is green\n")
	w.must("routine", "add", "sub", "--cron", "0 9 * * *", "--background", "--isolated", "--subagent", "helper", "Look.")
	big := anthropicapi.Usage{In: 100_000, Out: 1000}
	api.Reply(
		anthropicapi.Use("Task", map[string]string{"prompt": "What is in notes.md?", "subagent_type": "helper"}),
		anthropicapi.Reply{Usage: big, ToolUses: []anthropicapi.ToolUse{{Name: "Read", Input: map[string]string{"file_path": "notes.md"}}}},
		anthropicapi.Use("Bash", map[string]string{"command": "date"}),
		anthropicapi.Reply{Text: "The sky is green."},
		anthropicapi.Use("Task", map[string]string{"prompt": "And now?", "subagent_type": "general-purpose"}),
		anthropicapi.Reply{Text: "done"})
	w.must("fire", "sub")
	requests := api.Requests()
	if sub := requests[1]; !strings.Contains(sub.System, "You are the HELPER.") || sub.Has("Look.") || slices.Contains(sub.ToolNames(), "Task") || slices.Contains(sub.ToolNames(), "Glob") {
		t.Errorf("the subagent was asked %s", sub.Raw)
	}
	for i, want := range []string{2: "the sky is green", 3: "matches none", 4: "The sky is green.", 5: "matches none"} {
		if want == "" {
			continue
		}
		if got := requests[i].ToolResults()[0]; !strings.Contains(got.ResultText, want) {
			t.Errorf("request %d: %+v, want %q", i, got, want)
		}
	}
	if cost, _ := w.last()["cost"].(float64); cost < 0.2 {
		t.Errorf("the run cost %v: %v", cost, w.last())
	}
	if log := w.must("run", "log", "sub"); !strings.Contains(log, "notes.md") || !strings.Contains(log, "verdict denied Bash") {
		t.Errorf("the log: %s", log)
	}
}

// TestWebSearchOnNative: a run may search if a pattern allows it, and the service has a search.
func TestWebSearchOnNative(t *testing.T) {
	w, api := newNativeWorld(t)
	w.must("routine", "add", "news", "--cron", "0 9 * * *", "--background", "--isolated", "--allowed-tools", "WebSearch", "Look.")
	w.must("config", "set", "native.web-search", "on")
	api.Reply(
		anthropicapi.Use("WebSearch", map[string]string{"query": "go release"}),
		anthropicapi.Reply{Found: []anthropicapi.Page{{Title: "Go 1.27", URL: "https://go.dev/dl"}}, Text: "Go 1.27 is out."}, anthropicapi.Reply{Text: "done"})
	w.must("fire", "news")
	requests := api.Requests()
	if got := requests[2].ToolResults()[0]; !strings.Contains(got.ResultText, "https://go.dev/dl") || !requests[1].IsSearch() {
		t.Errorf("got %+v", got)
	}
	if log := w.must("run", "log", "news"); !strings.Contains(log, "verdict allowed WebSearch") || !strings.Contains(log, "Go 1.27 is out.") {
		t.Errorf("the log: %s", log)
	}
	for _, setting := range []string{"auto", "off"} { // the service is none of those that are known to have a search
		w.must("config", "set", "native.web-search", setting)
		api.Reply(anthropicapi.Reply{Text: "done"})
		w.must("fire", "news")
		if all := api.Requests(); slices.Contains(all[len(all)-1].ToolNames(), "WebSearch") {
			t.Errorf("%s: it is offered", setting)
		}
	}
}

// TestServerWorksAgain: the owner is told of a server that cannot be used, and that it can when a run has used it, not when one had no use
// for it.
func TestServerWorksAgain(t *testing.T) {
	t.Parallel()
	w, api := newServersWorld(t)
	p := w.phone()
	use := func() {
		api.Reply(anthropicapi.Use("mcp__notes__add", map[string]string{"text": "milk"}), anthropicapi.Reply{Text: "done"})
		w.run("fire", "write")
	}
	use()
	p.gets()
	good := w.read("servers/notes")
	w.writeProgram("servers/notes", "#!/bin/sh\nexit 3\n")
	w.approveJob("write")
	use()
	p.gets("^write: the MCP server notes could not be used: .*To do: `ollim doctor`")
	api.Reply(anthropicapi.Reply{Text: "nothing to note"})
	w.pass(time.Minute)
	w.must("fire", "write")
	p.gets()
	if got := p.doctorSays("uses"); !strings.HasPrefix(got, "FAIL the MCP server notes has failed since") {
		t.Error(got)
	}
	w.writeProgram("servers/notes", good)
	w.approveJob("write")
	w.pass(time.Minute)
	use()
	p.gets("^The MCP server notes works again; 1 fire did not do its work")
}
