package app

import (
	"io/fs"
	"os"
	"runtime"
	"slices"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/job"
)

const (
	perCore, least = 4, 8 // fires at once by default: a run mostly waits for its model

	// claudeRun is what a run of the claude-code engine takes at its peak, in bytes, without what its commands take: 298 to 305 MiB for claude
	// 2.1.197 and 199 MiB for 2.1.330, measured from start to end of one turn, and 13 MiB for the fire and 10 for its MCP server.
	claudeRun = 320 << 20
)

// Parallel returns how many fires of these routines ticks let be in progress at once: what the owner has set, else as many as the cores
// serve and, if one of the routines uses claude, as the memory holds.
func (h Home) Parallel(jobs []job.Job) int {
	if n := h.Config.Limits.Parallel; n > 0 {
		return n
	}
	return parallel(runtime.GOMAXPROCS(0), os.DirFS("/"), slices.ContainsFunc(jobs, h.usesClaude))
}

func (h Home) usesClaude(j job.Job) bool {
	own := j.Engine
	if own == "" {
		own = h.Config.Engine
	}
	return j.Kind == job.Routine && j.Enabled && own == engine.ClaudeCode
}

// parallel returns the default for a number of cores and the memory of a machine. A quarter of the memory is for everything else. The sum of
// the memory decides, not what is free: the runs in progress would have taken their part of that already.
func parallel(cores int, root fs.FS, claude bool) int {
	n := max(perCore*cores, least)
	if memory := process.Memory(root); claude && memory > 0 {
		n = min(n, int(memory/4*3/claudeRun))
	}
	return max(n, 1)
}
