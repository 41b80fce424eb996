package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/claudecode"
	"github.com/ollim/ollim/internal/server/mcp"
)

func newMCP(d *deps) *cobra.Command {
	// The Claude Code engine starts it for each MCP server that a run may use.
	connect := hidden(command(agentNever(programs), "connect SERVER PATTERN...",
		"Serve the tools of an MCP server that the patterns name, to the run that OLLIM_RUN names",
		func(cmd *cobra.Command, args []string) error {
			tools, err := d.ServerTools(cmd.Context(), args[0], args[1:])
			if err != nil {
				return err
			}
			defer tools.Close()
			return serveTools(cmd.Context(), d, tools)
		}))
	connect.Args = cobra.MinimumNArgs(1)
	return group("mcp", "Serve tools over the Model Context Protocol",
		command(agentNever(programs), "serve", "Serve the tools of a run, or yours, on standard input and output",
			func(cmd *cobra.Command, _ []string) error { return runMCPServe(cmd.Context(), d) }),
		connect,
		hidden(command(agentNever(programs), "tools", "List the tools that ollim mcp serve serves here", func(*cobra.Command, []string) error {
			tools, err := d.servedTools()
			if err != nil {
				return err
			}
			return records(d, "TOOL DESCRIPTION", tools.List(), func(t engine.Tool) []any { return []any{t.Name, prose(t.Description)} })
		})))
}

func runMCPServe(ctx context.Context, d *deps) error {
	tools, err := d.servedTools()
	if err != nil {
		return err
	}
	return serveTools(ctx, d, tools)
}

// servedTools returns the tools of the run that OLLIM_RUN names, and those of the owner outside every run.
func (d *deps) servedTools() (mcp.Tools, error) {
	if d.inside() {
		return d.Tools()
	}
	if err := d.OwnerOnly(); err != nil {
		return nil, err
	}
	return newOwnerTools(d), nil
}

func serveTools(ctx context.Context, d *deps, tools mcp.Tools) error {
	return mcp.Server{Tools: tools, Version: app.Version(), Warn: d.warn}.Serve(ctx, d.In, d.Stdout)
}

func (d *deps) insideTools() (*tools.Set, error) {
	h, err := d.Home()
	if err != nil {
		return nil, err
	}
	return h.Tools()
}

// newHook is what the engine calls, not people: `hook pre-tool` before every use of a tool, `hook post-tool` after a command
// of the agent in a sealed run, `hook stop` at the end of a turn.
func newHook(d *deps) *cobra.Command {
	verb := func(use, short string, act func(claudecode.Hook, context.Context, engine.Tools) (any, error)) *cobra.Command {
		return command(agentNever(programs), use, short, func(cmd *cobra.Command, _ []string) error { return runHook(cmd.Context(), d, act) })
	}
	return hidden(group("hook", "Commands that the Claude Code engine calls",
		verb("pre-tool", "Allow or deny a use of a tool", claudecode.Hook.PreTool),
		verb("post-tool", "Say what the seal has closed to a command", func(in claudecode.Hook, _ context.Context, _ engine.Tools) (any, error) {
			hints := d.Hints()
			if hints == nil {
				return nil, nil
			}
			return in.PostTool(hints), nil
		}),
		verb("stop", "Remind the agent of a report that it owes", claudecode.Hook.Stop)))
}

// hookError makes the engine block what it asked about. Any other status than 2 allows it.
const hookError status = 2

// hookPatience is shorter than the engine's wait, after which the engine allows what it asked about.
const hookPatience = tools.AskPatience + 20*time.Second

func runHook(ctx context.Context, d *deps, act func(claudecode.Hook, context.Context, engine.Tools) (any, error)) error {
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
			var set *tools.Set
			if set, err = d.insideTools(); err == nil {
				o.answer, err = act(in, ctx, set)
			}
		}
		o.err = err
		done <- o
	}()
	o := outcome{err: errors.New("no verdict in time")}
	select {
	case o = <-done:
	case <-ctx.Done():
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
