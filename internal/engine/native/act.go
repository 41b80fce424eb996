package native

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native/builtin"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// compactTool is the toolbox's tool that compacts the session; what it wishes for is done here, in mid-turn.
const compactTool = "compact_session"

func toolUses(m transcript.Message) (uses []transcript.Block) {
	for _, b := range m.Content {
		if b.Type == transcript.ToolUse {
			uses = append(uses, b)
		}
	}
	return uses
}

// harmless tools only look: they may be lost in a kill.
func (t *turn) harmless(name string) bool {
	if has(t.ownTools(), name) {
		return !builtin.HasEffects(name)
	}
	return name == "list_reminders" || name == "search_docs"
}

func has(list []engine.Tool, name string) bool {
	return slices.ContainsFunc(list, func(tool engine.Tool) bool { return tool.Name == name })
}

// notBegun answers a tool use of a run that had to end before it.
func notBegun() engine.ToolResult {
	return engine.ToolResult{Text: "this was not begun: the run had to end", IsError: true}
}

// decline answers tool uses that are not begun.
func (t *turn) decline(uses []transcript.Block) error {
	var results []transcript.Block
	for _, use := range uses {
		results = append(results, answer(use.ID, notBegun()))
	}
	if len(results) == 0 {
		return nil
	}
	return t.append(store.Buffered, t.entry(user(results)))
}

// offer is the tools that the model may use: the engine's own, then the agent's.
func (t *turn) offer() (list []provider.Tool) {
	for _, tool := range slices.Concat(t.ownTools(), t.agentTools()) {
		list = append(list, provider.Tool{Name: tool.Name, Description: tool.Description, Schema: tool.Schema})
	}
	return list
}

func (t *turn) ownTools() []engine.Tool {
	if t.own == nil {
		return nil
	}
	return t.own.List(t.request.Scope.BuiltIns)
}

func (t *turn) agentTools() []engine.Tool {
	if t.tools == nil {
		return nil
	}
	return t.tools.List()
}

// act uses the tools that the model asked for, one after the other, and keeps their results. Those that a stop leaves out
// are answered too: the conversation is whole whatever happens.
func (t *turn) act(ctx context.Context, uses []transcript.Block) error {
	t.acted = true
	results := make([]transcript.Block, len(uses))
	var stop error
	compact := -1
	for i, use := range uses {
		result := notBegun()
		switch {
		case stop != nil:
		case use.Name == compactTool && compact >= 0:
			result.Text = "once is enough"
		default:
			result, stop = t.use(ctx, use)
			if use.Name == compactTool && !result.IsError {
				compact = i
			}
		}
		results[i] = answer(use.ID, result)
	}
	if compact >= 0 && stop == nil {
		return t.compactNow(ctx, results, compact)
	}
	d := store.Buffered
	if stop != nil {
		d = store.Synced
	}
	if err := t.append(d, t.entry(user(results))); err != nil {
		return err
	}
	return stop
}

func answer(id string, r engine.ToolResult) transcript.Block {
	return transcript.Block{Type: transcript.ToolResult, ToolUseID: id, Content: r.Text, IsError: r.IsError}
}

// use is one use of a tool. The error ends the turn.
func (t *turn) use(ctx context.Context, use transcript.Block) (engine.ToolResult, error) {
	if err := t.sink(runlog.Event{Type: runlog.ToolUse, Tool: use.Name, ToolID: use.ID, Input: use.Input}); err != nil {
		return notBegun(), err
	}
	result, err := t.call(ctx, use)
	if err == nil && (use.Name != compactTool || result.IsError) { // else it is told when it is done
		err = t.sink(runlog.Event{Type: runlog.ToolResult, Tool: use.Name, ToolID: use.ID, Text: result.Text, IsError: result.IsError})
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return result, err
}

func (t *turn) call(ctx context.Context, use transcript.Block) (engine.ToolResult, error) {
	own := has(t.ownTools(), use.Name)
	switch {
	case !own && !has(t.agentTools(), use.Name):
		return engine.ToolResult{Text: "there is no tool " + use.Name + " here", IsError: true}, nil
	case provider.Unread(use.Input):
		return engine.ToolResult{Text: "the arguments are not a JSON object", IsError: true}, nil
	case own:
		reason, err := t.tools.Verdict(ctx, use.Name, use.ID, use.Input)
		if err != nil || reason != "" {
			return engine.ToolResult{Text: reason, IsError: true}, err
		}
		return t.own.Call(ctx, use.Name, use.Input), nil
	}
	return t.tools.Call(ctx, use.Name, use.Input), nil
}

// instructionsOf is those of a use of the compact tool.
func instructionsOf(use transcript.Block) string {
	var in struct {
		Instructions string `json:"instructions"`
	}
	if json.Unmarshal(use.Input, &in) != nil {
		return "" // the tool has refused it
	}
	return in.Instructions
}
