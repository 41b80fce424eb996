package native

import (
	"context"
	"errors"
	"slices"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

func toolUses(m transcript.Message) (uses []transcript.Block) {
	for _, b := range m.Content {
		if b.Type == transcript.ToolUse {
			uses = append(uses, b)
		}
	}
	return uses
}

// toolbox holds the tools that the model may use in a turn.
type toolbox struct {
	own   BuiltIns // the engine's own tools; nil if it has none
	names []string // names of the own tools that the run may use
	agent engine.Tools
	used  int // tool uses so far

	inner   []engine.Tool // tools of the engine itself that are not in own: Task and WebSearch
	servers Servers
	offered []engine.Tool // tools of the MCP servers; nil: those that are known without asking the servers
	by      string        // tool use that started the subagent whose tools these are; "" for the agent's
}

func (b *toolbox) ownTools() []engine.Tool {
	if b.own == nil {
		return nil
	}
	return b.own.List(b.names)
}

func (b *toolbox) agentTools() []engine.Tool {
	if b.agent == nil {
		return nil
	}
	return b.agent.List()
}

// offer lists the tools: the engine's own, the agent's, then those of MCP servers.
func (b *toolbox) offer() []engine.Tool {
	return slices.Concat(b.ownTools(), b.inner, b.agentTools(), b.serverTools())
}

// effect returns the effect of a tool with a name.
func (b *toolbox) effect(name string) engine.Effect {
	for _, tool := range b.offer() {
		if tool.Name == name {
			return tool.Effect
		}
	}
	return engine.Changes
}

// call uses a tool. It calls inner for a tool of the engine itself. An error ends the turn.
func (b *toolbox) call(ctx context.Context, use transcript.Block, inner func(context.Context, transcript.Block) (engine.ToolResult, error)) (engine.ToolResult, error) {
	b.used++
	own, ours, server := has(b.ownTools(), use.Name), has(b.inner, use.Name), has(b.serverTools(), use.Name)
	switch {
	case !own && !ours && !server && !has(b.agentTools(), use.Name):
		return engine.ToolResult{Text: "there is no tool " + use.Name + " here", IsError: true}, nil
	case provider.Unread(use.Input):
		return engine.ToolResult{Text: "the arguments are not a JSON object", IsError: true}, nil
	case !own && !ours && !server:
		return b.agent.Call(ctx, use.Name, use.Input), nil
	}
	reason, err := b.agent.Verdict(ctx, use.Name, b.id(use.ID), use.Input)
	switch {
	case err != nil || reason != "":
		return engine.ToolResult{Text: reason, IsError: true}, err
	case ours:
		return inner(ctx, use)
	case server:
		return b.servers.Call(ctx, use.Name, use.Input), nil
	}
	return b.own.Call(ctx, use.Name, use.Input), nil
}

// id returns the id of a tool use for the record. Some services number the uses of each conversation from 0.
func (b *toolbox) id(use string) string {
	if b.by == "" {
		return use
	}
	return b.by + "/" + use
}

func has(list []engine.Tool, name string) bool {
	return slices.ContainsFunc(list, func(tool engine.Tool) bool { return tool.Name == name })
}

// notBegun returns the result of a tool use that did not begin because the run ended.
func notBegun() engine.ToolResult {
	return engine.ToolResult{Text: "not started: the run had to end", IsError: true}
}

// act uses the tools that the model asked for, one after the other, and stores their results. Every use gets a result, including those
// that do not begin because the run was stopped. If stop is not nil, none begins.
func (t *turn) act(ctx context.Context, uses []transcript.Block, stop error) error {
	if len(uses) == 0 {
		return stop
	}
	results := make([]transcript.Block, len(uses))
	var more []transcript.Block
	compact := -1
	for i, use := range uses {
		result, compacts := notBegun(), t.tools.effect(use.Name) == engine.Compacts
		switch {
		case stop != nil:
		case compacts && compact >= 0:
			result.Text = use.Name + " was already called in this answer"
		default:
			result, stop = t.use(ctx, use, compacts)
			if compacts && !result.IsError {
				compact = i
			}
		}
		results[i] = answer(use.ID, result)
		for _, source := range result.More {
			more = append(more, source.Block())
		}
	}
	results = append(results, more...)
	if compact >= 0 && stop == nil {
		return t.compactNow(ctx, uses[compact], results, compact)
	}
	d := store.Buffered
	if stop != nil {
		d = store.Synced
	}
	return errors.Join(stop, t.talk.add(d, t.talk.entry(user(results))))
}

func answer(id string, r engine.ToolResult) transcript.Block {
	return transcript.Block{Type: transcript.ToolResult, ToolUseID: id, Content: r.Text, IsError: r.IsError, Source: r.Source}
}

// use uses a tool and records it. compacts says that the tool compacts the session. An error ends the turn.
func (t *turn) use(ctx context.Context, use transcript.Block, compacts bool) (engine.ToolResult, error) {
	if err := t.sink(runlog.Event{Type: runlog.ToolUse, Tool: use.Name, ToolID: use.ID, Input: use.Input}); err != nil {
		return notBegun(), err
	}
	result, err := t.tools.call(ctx, use, t.useInner)
	if err == nil {
		err = t.reportServers()
	}
	if err == nil && (!compacts || result.IsError) { // a successful compaction is recorded when it is done
		err = t.sink(runlog.Event{Type: runlog.ToolResult, Tool: use.Name, ToolID: use.ID, Text: result.Text, IsError: result.IsError})
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return result, err
}
