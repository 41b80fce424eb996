package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/testkit"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestClaudeIsToldWhatTheSealRefused: the model under the claude command reads with the result of a command what the seal has closed to it,
// whether the command failed or went on; and nothing of the .bashrc that is closed to a bash.
func TestClaudeIsToldWhatTheSealRefused(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	if _, err := seal.Check(); err != nil {
		testkit.Missing(t, "%v: run the test on Linux 6.12 or later", err)
	}
	c, api := withClaude(t)
	home := filepath.Join(filepath.Dir(c.data), "owner")
	diary := filepath.Join(home, "other", "diary")
	for _, path := range []string{diary, filepath.Join(home, ".bashrc")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("true\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := append(anthropicapi.ClaudeEnv(t, api), "HOME="+home, "SHELL=/bin/bash")
	c.ok(append([]string{"config", "set", "env"}, env...)...)
	c.put("read", "#!/bin/bash\nbash -c 'echo begun' 2>&1\ncat "+diary+" 2>&1\nexit $1\n")
	if err := os.Chmod(filepath.Join(c.data, "read"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.ok("routine", "add", "work", "--cron", "@yearly", "--background", "--isolated", "--allowed-tools", "Bash(./read *)", "Work.")
	api.Reply(anthropicapi.Use("Bash", map[string]string{"command": "./read 0"}), anthropicapi.Use("Bash", map[string]string{"command": "./read 3"}),
		anthropicapi.Reply{Text: "done"})
	c.ok("fire", "work")
	requests := api.Requests()
	hint := "ollim: seal: " + diary + " is closed: dirs: " + filepath.Dir(diary) + " opens it for reading"
	for n, r := range requests[max(0, len(requests)-2):] {
		if got := strings.Count(strings.Join(texts(r), "\n"), hint); got != n+1 {
			t.Errorf("request %d has the hint %d times, want %d: %s", n, got, n+1, r.Raw)
		}
		for _, result := range r.ToolResults() {
			if strings.Contains(result.ResultText, "bashrc") || !strings.Contains(result.ResultText, "begun") {
				t.Errorf("result %q", result.ResultText)
			}
		}
	}
}

// texts are all that the messages of a request say, besides the results of tools.
func texts(r anthropicapi.Request) (list []string) {
	for _, m := range r.Messages {
		for _, b := range m.Content {
			list = append(list, b.Text)
		}
	}
	return list
}
