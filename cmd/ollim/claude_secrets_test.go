package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestSecretsStayFromBash: the token of a login serves claude and is not in the environment of the agent's commands. A secret that
// claude can be given only through its environment refuses a run that may use commands, and no other.
func TestSecretsStayFromBash(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	c, api := withClaude(t)
	env := slices.DeleteFunc(anthropicapi.ClaudeEnv(t, api), func(kv string) bool { return strings.HasPrefix(kv, "ANTHROPIC_API_KEY=") })
	c.ok(append([]string{"config", "set", "env"}, env...)...)
	c.put("dump", "#!/bin/sh\nenv >\"$CLAUDE_CONFIG_DIR/dumped\"\n")
	if err := os.Chmod(filepath.Join(c.data, "dump"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.ok("routine", "add", "dumps", "--cron", "@yearly", "--background", "--isolated", "--allowed-tools", "Bash(./dump)", "Dump it.")
	c.ok("routine", "add", "quiet", "--cron", "@yearly", "--background", "--isolated", "Look around.")
	secrets := c.secretsFile()
	hide := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(secrets), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(secrets, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hide("engine.CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-hidden\n")
	api.Reply(anthropicapi.Use("Bash", map[string]string{"command": "./dump"}), anthropicapi.Reply{Text: "done"})
	c.ok("fire", "dumps")
	if got := api.Requests()[0].Header.Get("Authorization"); got != "Bearer sk-ant-oat01-hidden" {
		t.Errorf("authorization %q", got)
	}
	written := append(c.kept("dumped"), "") // none is an error below
	if text, err := os.ReadFile(written[0]); err != nil {
		t.Error(err)
	} else if dumped := string(text); !strings.Contains(dumped, "OLLIM_RUN=") || strings.Contains(dumped, "hidden") {
		t.Errorf("the environment of the agent's command: %s", dumped)
	}

	hide("engine.CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-hidden\nengine.AWS_SECRET_ACCESS_KEY=hidden\n")
	n := len(api.Requests())
	if said := c.fails(69, "fire", "dumps"); !strings.Contains(said, "engine.AWS_SECRET_ACCESS_KEY") || strings.Contains(said, "hidden") {
		t.Error(said)
	}
	if len(api.Requests()) != n {
		t.Error("the refused run asked the service")
	}
	c.wrap("exit 3") // instead of one more start of the real command
	c.complains(1, "exit status 3", "fire", "quiet")
}

// secretsFile is where the command looks for secrets.
func (c *command) secretsFile() string {
	home := ""
	for _, kv := range c.cmd("help").Env {
		if value, found := strings.CutPrefix(kv, "HOME="); found {
			home = value
		}
	}
	return filepath.Join(home, ".config", "ollim", "secrets.env")
}
