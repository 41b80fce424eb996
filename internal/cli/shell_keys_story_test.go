package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestShellKeys: a command typed at a shell takes key and address from its environment where the secrets file has none, an
// automatic run never does.
func TestShellKeys(t *testing.T) {
	t.Parallel()
	api := anthropicapi.New(t)
	w := newWorld(t, "--engine", "native")
	w.must("routine", "add", "daily", "--cron", "0 9 * * *", "--background", "Look around.")
	w.env["ANTHROPIC_API_KEY"], w.env["ANTHROPIC_BASE_URL"] = "from-the-shell", api.URL()
	w.env["OPENAI_API_KEY"], w.env["OPENAI_BASE_URL"] = "unused", "http://127.0.0.1:1"
	key := func() string {
		all := api.Requests()
		if len(all) == 0 {
			return ""
		}
		return all[len(all)-1].Header.Get("X-Api-Key")
	}
	for _, line := range [][]string{{"-p", "-n", "hi"}, {"chat", "hi"}, {"session", "compact", "main", "all"}} {
		before := len(api.Requests())
		w.must(line...)
		if got := key(); got != "from-the-shell" || len(api.Requests()) == before {
			t.Errorf("%q: %d requests, key %q", line, len(api.Requests())-before, got)
		}
	}
	before := len(api.Requests())
	refused := func(want string, line ...string) {
		t.Helper()
		r := w.run(line...)
		for _, part := range []string{"no engine.ANTHROPIC_API_KEY in " + w.home, "no ANTHROPIC_API_KEY in env of config.yaml", want,
			"hint: ollim secret set engine.ANTHROPIC_API_KEY", "export ANTHROPIC_API_KEY="} {
			if r.status != 69 || !strings.Contains(r.errOut, part) {
				t.Errorf("%q: status %d, want 69 and %q:\n%s", line, r.status, part, r.errOut)
			}
		}
		w.pass(1e9)
	}
	refused("only ask, chat and session compact", "fire", "daily")
	w.cron = true
	refused("only ask, chat and session compact", "-p", "-n", "hi")
	w.cron = false
	delete(w.env, "ANTHROPIC_API_KEY")
	delete(w.env, "ANTHROPIC_BASE_URL")
	refused("or in this environment", "-p", "-n", "hi")
	if n := len(api.Requests()); n != before {
		t.Errorf("%d requests without a key", n-before)
	}

	secrets := filepath.Join(w.home, ".config", "ollim", "secrets.env")
	if err := os.MkdirAll(filepath.Dir(secrets), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secrets, []byte("engine.ANTHROPIC_API_KEY=from-the-file\nengine.ANTHROPIC_BASE_URL="+api.URL()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env["ANTHROPIC_API_KEY"], w.env["ANTHROPIC_BASE_URL"] = "from-the-shell", "http://127.0.0.1:1"
	for _, line := range [][]string{{"-p", "-n", "hi"}, {"fire", "daily"}} {
		if w.must(line...); key() != "from-the-file" {
			t.Errorf("%q: key %q", line, key())
		}
	}
	w.must("config", "set", "native.base-url", "http://127.0.0.1:1") // nobody is there
	if r := w.run("-p", "-n", "hi"); r.status != 69 {
		t.Errorf("native.base-url does not win: %+v", r)
	}
}

// TestShellAddressIsJudged: an address of the environment is held to the rules of native.base-url.
func TestShellAddressIsJudged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--engine", "native")
	w.env["ANTHROPIC_API_KEY"], w.env["ANTHROPIC_BASE_URL"] = "k", "ftp://example.com"
	if r := w.run("-p", "-n", "hi"); r.status != 78 || !strings.Contains(r.errOut, "ANTHROPIC_BASE_URL of this environment: ") {
		t.Errorf("%+v", r)
	}
}
