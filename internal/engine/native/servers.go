package native

import (
	"context"
	"encoding/json"

	"github.com/ollim/ollim/internal/engine"
)

// none is the Servers of a request that names none.
type none struct{}

func (none) List(context.Context) []engine.Tool { return nil }
func (none) Known() []engine.Tool               { return nil }
func (none) Failures() map[string][]string      { return nil }
func (none) Close()                             {}
func (none) Call(context.Context, string, json.RawMessage) engine.ToolResult {
	return engine.ToolResult{IsError: true}
}

// openServers finds out what tools the MCP servers have, before the model is offered them. Only the end of ctx and of the record is an
// error: a server that cannot be used fails what needs it.
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
