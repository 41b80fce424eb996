package prompt_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/state/job"
)

// TestExampleOfAJob: the file that the system prompt shows is one that fires.
func TestExampleOfAJob(t *testing.T) {
	var example strings.Builder
	for line := range strings.Lines(prompt.SystemMain("")) {
		if text, indented := strings.CutPrefix(line, "    "); indented {
			example.WriteString(text)
		}
	}
	home := paths.Dir(t.TempDir())
	path := filepath.Join(home.Routines(), "daily-market.md")
	if err := os.MkdirAll(home.Routines(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(example.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := job.Library{Home: home, Zone: time.UTC}.Load()
	if err != nil || len(found.Faults) > 0 || len(found.Jobs) != 1 {
		t.Fatalf("%v, %v, %d jobs of\n%s", err, found.Faults, len(found.Jobs), example.String())
	}
	if j := found.Jobs[0]; j.ID != "daily-market" || !j.Background || j.Body == "" {
		t.Errorf("%+v", j)
	}
}
