package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
)

// Hook is the input that the claude command gives to a hook.
type Hook struct {
	Tool   string          `json:"tool_name"`
	Input  json.RawMessage `json:"tool_input"`
	ToolID string          `json:"tool_use_id"`
	Event  string          `json:"hook_event_name"`
	Result json.RawMessage `json:"tool_response"` // result of a tool that succeeded
	Error  string          `json:"error"`         // output of a tool that failed
}

// maxHook is the largest input of a hook that is read, in bytes.
const maxHook = 64 << 20

// ReadHook parses the input of a hook.
func ReadHook(r io.Reader) (in Hook, err error) {
	if err := json.NewDecoder(io.LimitReader(r, maxHook)).Decode(&in); err != nil {
		return in, store.Misfit(err)
	}
	return in, nil
}

// PreTool decides the use of a tool, and returns the object that answers the hook.
func (in Hook) PreTool(ctx context.Context, tools engine.Tools) (any, error) {
	reason, err := tools.Verdict(ctx, in.Tool, in.ToolID, in.Input)
	if err != nil {
		return nil, err
	}
	verdict := map[string]string{"hookEventName": "PreToolUse", "permissionDecision": "allow"}
	if reason != "" {
		verdict["permissionDecision"], verdict["permissionDecisionReason"] = "deny", reason
	}
	return map[string]any{"hookSpecificOutput": verdict}, nil
}

// PostTool tells the model what the seal denied to a command. It returns the object that answers the hook; nil if there is nothing to
// say.
func (in Hook) PostTool(hints engine.Hints) any {
	var call struct{ Command string }
	var result struct{ Stdout, Stderr string }
	_ = json.Unmarshal(in.Input, &call)    // input without a command,
	_ = json.Unmarshal(in.Result, &result) // or a result without output, gives no hints
	said := engine.WithHints("", hints(call.Command, result.Stdout+"\n"+result.Stderr+in.Error, in.Error != ""))
	if said == "" {
		return nil
	}
	return map[string]any{"hookSpecificOutput": map[string]string{"hookEventName": in.Event, "additionalContext": said}}
}

// Stop reminds an agent that ends its turn of its duties. It returns the object that answers the hook; nil if the agent may end.
func (in Hook) Stop(ctx context.Context, tools engine.Tools) (any, error) {
	text, err := tools.Nudge(ctx)
	if err != nil {
		return nil, fmt.Errorf("stop: %w", err)
	}
	if text == "" {
		return nil, nil
	}
	return map[string]string{"decision": "block", "reason": text}, nil
}
