package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
)

// reportServers reports the MCP servers that the run could not use: on standard error, where the owner waits for the answer, else as
// an update for the main conversation, each server once a day.
func (w *work) reportServers(ctx context.Context) {
	failed, err := w.run.FailedServers()
	w.warn(err)
	for _, e := range failed {
		if w.spec.Policy.Awaited {
			w.warn(fmt.Errorf("MCP server %s: %s", e.Tool, e.Text))
			continue
		}
		day := "mcp " + e.Tool + " "
		key := day + w.Disk.Now().In(w.Zone).Format(time.DateOnly)
		first, err := w.Notices.Once(ctx, key)
		if w.warn(err); !first {
			continue
		}
		w.warn(w.Notices.Forget(ctx, func(old string) bool { return old == key || len(old) < len(day) || old[:len(day)] != day }))
		w.warn(w.Updates.Add(ctx, prompt.ServerFailed(w.run.Label(), e.Tool, e.Text), w.run.ID))
	}
}
