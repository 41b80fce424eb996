package runner

import (
	"context"
	"fmt"
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
		if !w.onceADay(ctx, "mcp "+e.Tool) {
			continue
		}
		text := fmt.Sprintf("%s: the MCP server %s could not be used: %s. It is reported once a day.", w.run.Label(), e.Tool, e.Text)
		w.warn(w.Updates.Add(ctx, text, w.run.ID))
	}
}
