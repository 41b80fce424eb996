package anthropicapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

const install = "npm install -g @anthropic-ai/claude-code"

// Claude returns the path of the real claude command: $OLLIM_TEST_CLAUDE, else claude on PATH, else the one installed
// by "npm install --prefix ~/.cache/ollim-test @anthropic-ai/claude-code". Without one the test is skipped, or fails if
// CI=true.
func Claude(t testing.TB) string {
	t.Helper()
	cache, _ := os.UserCacheDir()
	for _, name := range []string{os.Getenv("OLLIM_TEST_CLAUDE"), "claude", filepath.Join(cache, "ollim-test/node_modules/.bin/claude")} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		if name == os.Getenv("OLLIM_TEST_CLAUDE") {
			t.Fatalf("OLLIM_TEST_CLAUDE: no command %s", name)
		}
	}
	testkit.Missing(t, "no claude command: %s", install)
	return ""
}

// InCI skips a test, or a case, that starts the claude command again: a start takes a second of processor time, and the tests that remain
// start it in each way once. With CI=true it runs.
func InCI(t testing.TB) {
	t.Helper()
	if !testkit.CI() {
		t.Skip("one more start of the claude command: set CI=true to run it, which needs what .ci/run installs")
	}
}

// ClaudeEnv returns the whole environment in which claude connects only to s: a new home with configuration and
// temporary files that ends with the test, and only PATH from this process. To resume a session, keep the environment:
// each call makes a new home.
func ClaudeEnv(t testing.TB, s *Server) []string {
	t.Helper()
	home, tmp := t.TempDir(), t.TempDir()
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + home,
		"TMPDIR=" + tmp, // else it leaves a directory for each session in /tmp/claude-UID
		"CLAUDE_CONFIG_DIR=" + filepath.Join(home, ".claude"),
		"ANTHROPIC_BASE_URL=" + s.URL(),
		"ANTHROPIC_API_KEY=test",
		"DISABLE_AUTOUPDATER=1",
		"DISABLE_TELEMETRY=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CODE_MAX_RETRIES=1",
		// Its JavaScript engine: a run is too short to repay optimized code or the collection of its garbage.
		"BUN_JSC_useDFGJIT=0",
		"BUN_JSC_useConcurrentGC=0",
		"BUN_JSC_largeHeapSize=536870912",
	}
}
