package native

import (
	"context"
	"encoding/json"

	"github.com/ollim/ollim/internal/engine"
)

// none is the Servers of a request without servers.
type none struct{}

func (none) List(context.Context) []engine.Tool { return nil }
func (none) Known() []engine.Tool               { return nil }
func (none) Failures() map[string][]string      { return nil }
func (none) Close()                             {}
func (none) Call(context.Context, string, json.RawMessage) engine.ToolResult {
	return engine.ToolResult{IsError: true}
}

// openServers asks the MCP servers for their tools before the model is offered them. It returns an error only if ctx ends or the record
// cannot be written: an unusable server only fails the calls that need it.
func (t *turn) openServers(ctx context.Context) error {
	t.tools.offered = append([]engine.Tool{}, t.tools.servers.List(ctx)...)
	if ctx.Err() != nil {
		t.tools.servers.Close()
		return context.Cause(ctx)
	}
	return t.reportServers()
}

// reportServers records the servers that could not be used.
func (t *turn) reportServers() error { return t.sink.ReportServers(t.tools.servers.Failures()) }

func (b *toolbox) serverTools() []engine.Tool {
	if b.offered == nil {
		return b.servers.Known()
	}
	return b.offered
}
