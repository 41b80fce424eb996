package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/platform/store"
)

// newHook is what the engine calls, not people: `hook pre-tool` before every use of a tool, `hook stop` at the end of a turn.
func newHook(d *Deps) *cobra.Command {
	cmd := group("hook", "hooks", "What the Claude Code engine calls",
		newHookVerb(d, "pre-tool", "Give a verdict on a use of a tool", hookPreTool),
		newHookVerb(d, "stop", "Hold the agent to the report that it owes", hookStop))
	cmd.Hidden = true
	return cmd
}

func newHookVerb(d *Deps, use, short string, act func(context.Context, *Deps, hookInput) (any, error)) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(programs),
		Use:         use, Short: short, Args: checked(cobra.NoArgs),
		RunE: works(func(cmd *cobra.Command, _ []string) error { return runHook(cmd.Context(), d, act) }),
	}
}

// hookInput is what the engine sends.
type hookInput struct {
	Tool   string          `json:"tool_name"`
	Input  json.RawMessage `json:"tool_input"`
	ToolID string          `json:"tool_use_id"`
}

// hookError makes the engine block what it asked about: exit status 2 does, any other failure lets it pass.
const hookError status = 2

// hookPatience is shorter than the engine's, which lets pass what it waited for in vain.
const hookPatience = 40 * time.Second

func runHook(ctx context.Context, d *Deps, act func(context.Context, *Deps, hookInput) (any, error)) error {
	type outcome struct {
		answer any
		err    error
	}
	ctx, cancel := context.WithTimeout(ctx, hookPatience)
	defer cancel()
	done := make(chan outcome, 1)
	go func() {
		var in hookInput
		var o outcome
		if o.err = json.NewDecoder(io.LimitReader(d.In, 64<<20)).Decode(&in); o.err != nil {
			o.err = store.Misfit(o.err)
		} else {
			o.answer, o.err = act(ctx, d, in)
		}
		done <- o
	}()
	var answer any
	var err error
	select {
	case o := <-done:
		answer, err = o.answer, o.err
	case <-ctx.Done():
		err = errors.New("no verdict in time")
	}
	if err == nil && answer != nil {
		err = d.emit(answer)
	}
	if err == nil {
		err = d.flush()
	}
	if err != nil {
		return &withStatus{err, hookError}
	}
	return nil
}

// preToolAnswer is the form in which the engine wants a verdict.
type preToolAnswer struct {
	Output struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason,omitempty"`
	} `json:"hookSpecificOutput"`
}

func hookPreTool(ctx context.Context, d *Deps, in hookInput) (any, error) {
	box, err := d.insideBox()
	if err != nil {
		return nil, err
	}
	reason, err := box.Verdict(ctx, in.Tool, in.ToolID, in.Input)
	if err != nil {
		return nil, err
	}
	var a preToolAnswer
	a.Output.Event, a.Output.Decision, a.Output.Reason = "PreToolUse", "allow", reason
	if reason != "" {
		a.Output.Decision = "deny"
	}
	return a, nil
}

// stopAnswer makes the agent go on.
type stopAnswer struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
}

func hookStop(ctx context.Context, d *Deps, _ hookInput) (any, error) {
	box, err := d.insideBox()
	if err != nil {
		return nil, err
	}
	text, err := box.Nudge(ctx)
	if err != nil {
		return nil, fmt.Errorf("stop: %w", err)
	}
	if text == "" {
		return nil, nil
	}
	return stopAnswer{"block", text}, nil
}
