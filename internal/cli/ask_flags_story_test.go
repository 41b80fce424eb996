package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestToolsOfAsk: --permission-mode, --tools and --disallowed-tools mean what they mean for claude -p.
func TestToolsOfAsk(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	for _, c := range []struct {
		args string
		want string // the tools that the model is offered
	}{
		{"--permission-mode dontAsk", "Glob Grep Read"},
		{"--permission-mode default", "Glob Grep Read"},
		{"--permission-mode acceptEdits", "Edit Glob Grep Read Write"},
		{"--tools default", "Glob Grep Read"},
		{"--tools Read,Bash", "Read"},
		{"--tools Read,Bash --allowedTools=Bash(ls)", "Bash Read"},
		{"--tools=", ""},
		{"--disallowedTools Grep Glob", "Read"},
		{"--disallowed-tools=Write --disallowed-tools=Read --permission-mode acceptEdits", "Edit Glob Grep"},
		{"--disallowedTools Read --tools Read,Grep", "Grep"},
	} {
		api.Reply(anthropicapi.Reply{Text: "1"})
		w.must(append([]string{"-p", "-n"}, append(strings.Fields(c.args), "hi")...)...)
		var names []string
		for _, tool := range lastRequest(t, api).Tools {
			names = append(names, tool.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: the model is offered %q, want %q", c.args, got, c.want)
		}
	}
}

// TestAcceptEditsOfAsk: the mode lets the agent write in the working directory, and nowhere else.
func TestAcceptEditsOfAsk(t *testing.T) {
	w, api := newNativeWorld(t)
	t.Chdir(t.TempDir())
	outside := filepath.Join(t.TempDir(), "b")
	api.Reply(anthropicapi.Use("Write", map[string]string{"file_path": "a", "content": "x"}), anthropicapi.Use("Write", map[string]string{"file_path": outside, "content": "x"}), anthropicapi.Reply{Text: "ok"})
	w.must("-p", "-n", "--permission-mode", "acceptEdits", "write")
	if !exists("a") || exists(outside) {
		t.Errorf("written: %v, %v", exists("a"), exists(outside))
	}
}

// TestForkSession: --fork-session continues in a copy, also of a session that was compacted, and leaves the session as it is.
func TestForkSession(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	session := func(args ...string) string {
		t.Helper()
		api.Reply(anthropicapi.Reply{Text: "fine"})
		var a struct {
			ID string `json:"session_id"`
		}
		if err := json.Unmarshal([]byte(w.must(append([]string{"-p", "-n", "--output-format", "json"}, args...)...)), &a); err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	first := session("one")
	for _, how := range [][]string{{"-c"}, {"-r", first}} {
		files, _ := filepath.Glob(filepath.Join(w.dir, "sessions", "--*", "*"+first+".jsonl"))
		if len(files) != 1 {
			t.Fatalf("%q", files)
		}
		before, _ := os.ReadFile(files[0])
		forked := session(append(slices.Clone(how), "--fork-session", "two")...)
		if last := lastRequest(t, api); forked == first || occurrences(last, "one") == 0 {
			t.Errorf("%q: %s became %s", how, first, forked)
		}
		if after, _ := os.ReadFile(files[0]); string(after) != string(before) {
			t.Errorf("%q: the session was changed", how)
		}
		session("-r", forked, "--no-session-persistence", "three") // the copy is kept, and this question is not
		if last := lastRequest(t, api); occurrences(last, "two") == 0 {
			t.Errorf("%q: the copy was not kept", how)
		}
		if list := w.must("session", "list", "--all"); strings.Contains(list, "three") {
			t.Errorf("kept: %s", list)
		}
		first = forked
	}
}

// TestFlagsOfClaudeRefused: a flag of claude -p that ask does not have is refused in one line that says why and what to use instead.
func TestFlagsOfClaudeRefused(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	for line, want := range map[string]string{
		"-p --permission-mode plan hi":                            "--permission-mode plan: a question has no plan to accept: ask for a plan, and leave out --allowed-tools, so that the agent only reads",
		"-p --permission-mode bypassPermissions hi":               "--permission-mode bypassPermissions: what no pattern allows is always refused: name what the agent may use with --allowed-tools",
		"-p --permission-mode auto hi":                            "--permission-mode auto: what no pattern allows is always refused: name what the agent may use with --allowed-tools",
		"-p --permission-mode no hi":                              `--permission-mode "no": want dontAsk, default or acceptEdits`,
		"-p --disallowedTools Bash(git:*) hi":                     `--disallowed-tools "Bash(git *)": want the name of a built-in tool, such as Grep: a use that no pattern of --allowed-tools allows is refused anyway`,
		"-p --tools Reed hi":                                      `--tools "Reed": want the name of a built-in tool, such as Grep: a use that no pattern of --allowed-tools allows is refused anyway`,
		"-p --session-id 3f6f0c4e-8a0e-4a3b-8a3b-1c8a4b0f7c11 hi": "--session-id: ask chooses the id of a new session itself: --output-format json prints it as session_id, and -r ID continues it",
		"-p --mcp-config servers.json hi":                         "--mcp-config: MCP servers are those of mcp-servers in config.yaml: add the server there, and allow its tools with --allowed-tools mcp__SERVER__*",
		"--settings s.json -p hi":                                 "--settings: the settings are those of ollim: use ollim config set, or --config FILE for another settings file",
		"ask --settings={} hi":                                    "--settings: the settings are those of ollim: use ollim config set, or --config FILE for another settings file",
		"-p --input-format stream-json":                           "--input-format stream-json: ask takes one question: pipe in its text, and put further ones with -c",
		"-p --fork-session hi":                                    "--fork-session needs -c, -r or --session",
	} {
		r := w.run(strings.Fields(line)...)
		r.errOut = strings.Replace(r.errOut, "ollim: ask: ", "ollim: ", 1)
		if r.status != 64 || r.errOut != "ollim: "+want+"\n" {
			t.Errorf("%s: %+v", line, r)
		}
	}
	api.Reply(anthropicapi.Reply{Text: "1"})
	w.must("-p", "--input-format", "text", "hi")
	if n := len(api.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}
