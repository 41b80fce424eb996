package app

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
)

// TestParallelCountsMemory: the default is that of the cores, and of the memory if claude runs.
func TestParallelCountsMemory(t *testing.T) {
	for _, c := range []struct {
		cores, mib int
		claude     bool
		want       int
	}{
		{1, 512, false, 8},
		{2, 512, false, 8},
		{16, 512, false, 64},
		{2, 0, true, 8}, // not known
		{2, 256, true, 1},
		{2, 512, true, 1},
		{2, 1024, true, 2},
		{2, 2048, true, 4},
		{2, 4096, true, 8}, // it holds 9
		{8, 8192, true, 19},
		{16, 65536, true, 64},
	} {
		root := fstest.MapFS{}
		if c.mib > 0 {
			root["proc/meminfo"] = &fstest.MapFile{Data: []byte(fmt.Sprintf("MemTotal: %d kB\n", c.mib<<10))}
		}
		if got := parallel(c.cores, root, c.claude); got != c.want {
			t.Errorf("%d cores, %d MiB, claude %v: %d, want %d", c.cores, c.mib, c.claude, got, c.want)
		}
	}
}

// TestUsesClaude: the engine of the routine decides, else that of the settings.
func TestUsesClaude(t *testing.T) {
	for _, c := range []struct {
		configured string
		j          job.Job
		want       bool
	}{
		{engine.ClaudeCode, job.Job{Kind: job.Routine, Enabled: true}, true},
		{engine.ClaudeCode, job.Job{Kind: job.Routine}, false},
		{engine.ClaudeCode, job.Job{Kind: job.Reminder, Enabled: true}, false},
		{engine.ClaudeCode, job.Job{Kind: job.Routine, Enabled: true, Engine: engine.Native}, false},
		{engine.Native, job.Job{Kind: job.Routine, Enabled: true}, false},
		{engine.Native, job.Job{Kind: job.Routine, Enabled: true, Engine: engine.ClaudeCode}, true},
	} {
		h := Home{Config: config.Config{Engine: c.configured}}
		if got := h.usesClaude(c.j); got != c.want {
			t.Errorf("engine %s, %+v: %v, want %v", c.configured, c.j, got, c.want)
		}
	}
	h := Home{Config: config.Config{Engine: engine.ClaudeCode}}
	h.Config.Limits.Parallel = 77
	if got := h.Parallel([]job.Job{{Kind: job.Routine, Enabled: true}}); got != 77 {
		t.Errorf("%d, although the owner has set 77", got)
	}
}
