package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// withClaude is ollim with the real claude command as its engine, over an API server of the test.
func withClaude(t testing.TB) (*command, *anthropicapi.Server) {
	t.Helper()
	claude := anthropicapi.Claude(t)
	api := anthropicapi.New(t)
	c := newCommand(t)
	c.ok(append([]string{"config", "set", "env"}, anthropicapi.ClaudeEnv(t, api)...)...)
	c.ok("config", "set", "claude-code.command", claude)
	c.ok("config", "set", "engine", "claude-code")
	return c, api
}

// kept lists what the claude command keeps under a name, in the directories of sealed processes and in the one of others.
func (c *command) kept(name string) (list []string) {
	c.t.Helper()
	for _, dir := range []string{filepath.Join(c.data, "sessions/claude/*"), c.variable("CLAUDE_CONFIG_DIR")} {
		found, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil {
			c.t.Error(err)
		}
		list = append(list, found...)
	}
	return list
}

func (c *command) fails(want int, args ...string) string {
	c.t.Helper()
	var errOut bytes.Buffer
	cmd := c.cmd(args...)
	cmd.Stderr = &errOut
	if got := status(cmd.Run()); got != want {
		c.t.Errorf("ollim %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, errOut.String())
	}
	return errOut.String()
}

func (c *command) read(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.data, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}
