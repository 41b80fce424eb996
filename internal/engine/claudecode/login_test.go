package claudecode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// credentials is what the command stores of a login.
func credentials(access string, end time.Time) string {
	return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":%q,"refreshToken":"REFRESH","expiresAt":%d,"scopes":["user:inference"]}}`, access, end.UnixMilli())
}

// TestStoredLogin: a sealed process is given an access token that is valid, renewed by the command if need be, or the key of a login. The
// command is not asked about a token.
func TestStoredLogin(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	later := now.Add(8 * time.Hour)
	for name, c := range map[string]struct {
		file, settings, renewed, env string
		want                         string // "" is none
		err                          string
	}{
		"valid":           {file: credentials("A", later), renewed: credentials("B", later), want: "CLAUDE_CODE_OAUTH_TOKEN=A"},
		"ends soon":       {file: credentials("A", now.Add(time.Minute)), renewed: credentials("B", later), want: "CLAUDE_CODE_OAUTH_TOKEN=B"},
		"ends soon, kept": {file: credentials("A", now.Add(time.Minute)), want: "CLAUDE_CODE_OAUTH_TOKEN=A"},
		"expired":         {file: credentials("A", now.Add(-time.Minute)), err: "claude auth login"},
		"a key":           {settings: `{"primaryApiKey":"K"}`, want: "ANTHROPIC_API_KEY=K"},
		"none":            {},
		"of the settings": {file: credentials("A", now.Add(-time.Minute)), env: "ANTHROPIC_AUTH_TOKEN=x"},
		"torn":            {file: `{"claudeAi`, err: ".credentials.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			write := func(name, text string) {
				if err := testkit.WriteFile(filepath.Join(home, name), []byte(text), 0o700); err != nil && text != "" { //nolint:gosec // one is to be run
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(home, ".claude"), 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{".claude/.credentials.json": c.file, ".claude.json": c.settings} {
				if text != "" {
					write(name, text)
				}
			}
			script := "#!/bin/sh\n[ \"$1\" = auth ] && echo '{\"loggedIn\": true, \"authMethod\": \"asked\"}'\n"
			if c.renewed != "" {
				write("renewed", c.renewed)
				script += "[ \"$1 $2\" = 'mcp get' ] && cp \"$HOME/renewed\" \"$HOME/.claude/.credentials.json\"\n"
			}
			write("claude", script)
			e := &Engine{Command: filepath.Join(home, "claude"), Env: []string{"HOME=" + home, "PATH=/usr/bin:/bin", c.env}, Disk: store.Disk{Now: func() time.Time { return now }}}
			got, err := e.stored(t.Context())
			if strings.Join(got, " ") != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q, %v", got, err)
			}
			method, err := e.Login(t.Context())
			if asked := !strings.HasPrefix(c.file, `{"claudeAiOauth"`) || c.env != ""; (method == "asked") != asked || err != nil {
				t.Errorf("logged in by %q, %v", method, err)
			}
		})
	}
}

// TestSealedLogin: the model is asked with the access token, and a command of the agent finds it in no environment.
func TestSealedLogin(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	w := newSealedWorld(t)
	w.engine.Env = append(w.engine.Env, "ANTHROPIC_API_KEY=")
	w.place(w.engine.shared(), ".credentials.json", credentials("sk-ant-oat01-ACCESS", time.Now().Add(time.Hour)))
	w.program("probe", "cat /proc/self/environ \"/proc/$PPID/environ\" | tr '\\0' '\\n' | grep -c ACCESS")
	w.ask("Bash", map[string]any{"command": "./probe all", "description": "look"})
	if _, err := w.run(engine.Request{Input: engine.Input{Prompt: "go"}}, "Bash(./probe *)"); err != nil {
		t.Fatal(err)
	}
	if got := w.api.Requests()[0].Header.Get("Authorization"); got != "Bearer sk-ant-oat01-ACCESS" {
		t.Errorf("asked with %q", got)
	}
	if text := w.result("Bash").Text; !strings.HasSuffix(text, "\n0") {
		t.Errorf("grep printed %q", text)
	}
}
