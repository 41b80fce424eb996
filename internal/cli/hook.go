package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/claudecode"
)

// newHook is what the engine calls, not people: `hook pre-tool` before every use of a tool, `hook stop` at the end of a turn.
func newHook(d *Deps) *cobra.Command {
	cmd := group("hook", "hooks", "Commands that the Claude Code engine calls",
		newHookVerb(d, "pre-tool", "Allow or deny a use of a tool", claudecode.Hook.PreTool),
		newHookVerb(d, "stop", "Remind the agent of a report that it owes", claudecode.Hook.Stop))
	cmd.Hidden = true
	return cmd
}

func newHookVerb(d *Deps, use, short string, act func(claudecode.Hook, context.Context, engine.Tools) (any, error)) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(programs),
		Use:         use, Short: short, Args: checked(cobra.NoArgs),
		RunE: works(func(cmd *cobra.Command, _ []string) error { return runHook(cmd.Context(), d, act) }),
	}
}

// hookError makes the engine block what it asked about: exit status 2 does, any other failure lets it pass.
const hookError status = 2

// hookPatience is shorter than the engine's, which lets pass what it waited for in vain.
const hookPatience = 40 * time.Second

func runHook(ctx context.Context, d *Deps, act func(claudecode.Hook, context.Context, engine.Tools) (any, error)) error {
	type outcome struct {
		answer any
		err    error
	}
	ctx, cancel := context.WithTimeout(ctx, hookPatience)
	defer cancel()
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		in, err := claudecode.ReadHook(d.In)
		if err == nil {
			o.answer, err = d.answerHook(ctx, in, act)
		}
		o.err = err
		done <- o
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		o.err = errors.New("no verdict in time")
	}
	if o.err == nil && o.answer != nil {
		o.err = d.emit(o.answer)
	}
	if o.err == nil {
		o.err = d.flush()
	}
	if o.err != nil {
		return &withStatus{o.err, hookError}
	}
	return nil
}

func (d *Deps) answerHook(ctx context.Context, in claudecode.Hook, act func(claudecode.Hook, context.Context, engine.Tools) (any, error)) (any, error) {
	tools, err := d.insideTools()
	if err != nil {
		return nil, err
	}
	return act(in, ctx, tools)
}
