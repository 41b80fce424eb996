package claudecode

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/model"
)

// TestEnvironment: the agent's Bash, and hooks of its own, can tell which run it is and which slot that answers.
func TestEnvironment(t *testing.T) {
	e := &Engine{Env: []string{"HOME=/h", "ANTHROPIC_API_KEY=k", "CLAUDE_CODE_OAUTH_TOKEN=o"}}
	got := e.environment(engine.Request{Run: engine.Run{ID: "r1", Slot: time.Date(2026, 3, 2, 10, 0, 0, 0, time.FixedZone("", 3600))}})
	for _, want := range []string{"HOME=/h", "OLLIM_RUN=r1", "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR=3", "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR=4", "OLLIM_SLOT=2026-03-02T09:00:00Z"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	if slices.Contains(got, "ANTHROPIC_API_KEY=k") || slices.Contains(got, "CLAUDE_CODE_OAUTH_TOKEN=o") {
		t.Errorf("secrets would be inherited: %q", got)
	}
	for _, entry := range e.environment(engine.Request{Run: engine.Run{ID: "r1"}}) {
		if len(entry) > 10 && entry[:10] == "OLLIM_SLOT" {
			t.Error(entry)
		}
	}
}

// TestShellEnv: the agent's commands find ollim, and what an owner says of their shell counts.
func TestShellEnv(t *testing.T) {
	e := &Engine{Self: "/it's here/ollim", Env: []string{"PATH=/usr/bin:/bin"}, Home: newHome(t, "r")}
	withBash := engine.Request{Run: engine.Run{ID: "r"}, Scope: engine.Scope{BuiltIns: []string{"Read", "Bash"}}}
	got, err := e.shellEnv(withBash)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	script, _ := strings.CutPrefix(got[0], "CLAUDE_ENV_FILE=")
	out, err := exec.Command("/bin/sh", "-c", `PATH=/none; . "$0"; echo "$PATH"`, script).Output()
	if err != nil || string(out) != "/usr/bin:/bin:/it's here\n" {
		t.Errorf("PATH %q, %v", out, err)
	}
	if got, err := e.shellEnv(engine.Request{Scope: engine.Scope{BuiltIns: []string{"Read"}}}); len(got) > 0 || err != nil {
		t.Errorf("without a shell: %q %v", got, err)
	}
	e.Env = append(e.Env, "CLAUDE_ENV_FILE=/mine")
	if got, err := e.shellEnv(withBash); len(got) > 0 || err != nil {
		t.Errorf("beside the owner's: %q %v", got, err)
	}
}

// A run's files are put in place whole: killed in between, it leaves none that does not parse.
func TestFilesAppearWhole(t *testing.T) {
	e := &Engine{Self: "/bin/ollim", Home: newHome(t, "r")}
	dir := e.Home.Run("r")
	for _, name := range []string{"settings.json", "mcp.json"} {
		old := filepath.Join(dir, "old-"+name) // the same file by another name: written to, both would change
		if err := errors.Join(os.WriteFile(old, []byte("{}"), 0o600), os.Link(old, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.common(engine.Request{Run: engine.Run{ID: "r"}}, Known{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"settings.json", "mcp.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !json.Valid(text) || len(text) < 10 {
			t.Errorf("%s: %q %v", name, text, err)
		}
		if old, err := os.ReadFile(filepath.Join(dir, "old-"+name)); err != nil || string(old) != "{}" {
			t.Errorf("%s was written over in place: %q %v", name, old, err)
		}
	}
}

// TestCompactAt: the command is told the length at which the session is compacted: never less than it accepts, never more than its
// window, and for a branch the window alone.
func TestCompactAt(t *testing.T) {
	e := Engine{Models: model.Known()}
	newer, older := Known{Flags: []string{flagAutoCompact}}, Known{}
	for name, c := range map[string]struct {
		model   string
		session engine.Session
		known   Known
		want    int
	}{
		"a setting":            {"opus", engine.Session{ID: "a", Full: engine.Full{Tokens: 120_000}}, newer, 120_000},
		"less than it accepts": {"opus", engine.Session{ID: "a", Full: engine.Full{Tokens: 20_000}}, newer, leastCompact},
		"the window":           {"opus", engine.Session{ID: "a", Full: engine.Full{Tokens: 900_000}}, newer, 200_000},
		"a long window":        {"opus[1m]", engine.Session{ID: "a", Full: engine.Full{Tokens: 900_000}}, newer, 900_000},
		"money":                {"fable", engine.Session{ID: "a", Full: engine.Full{MaxCost: 3}}, newer, 120_001},
		"a branch":             {"opus", engine.Session{ID: "a", Fork: true, Full: engine.Full{Tokens: 120_000}}, newer, 200_000},
		"an older command":     {"opus", engine.Session{ID: "a", Full: engine.Full{Tokens: 120_000}}, older, 0},
	} {
		r := engine.Request{Model: engine.Model{Name: c.model}, Session: c.session}
		if got := e.compactAt(r, c.known); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		args := strings.Join(e.newer(r, c.known), " ")
		if want := flagAutoCompact + " " + strconv.Itoa(c.want); strings.Contains(args, flagAutoCompact) != (c.want > 0) || c.want > 0 && !strings.Contains(args, want) {
			t.Errorf("%s: %s, want %s", name, args, want)
		}
	}
}
