package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/server/mcp"
)

func newMCP(d *Deps) *cobra.Command {
	return group("mcp", "mcps", "Serve the agent's tools over the Model Context Protocol", newMCPServe(d), newMCPTools(d))
}

func newMCPServe(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(programs),
		Use:         "serve",
		Short:       "Serve the agent's tools on standard input and output",
		Long: "Serve speaks the Model Context Protocol on standard input and output. The record of the run that OLLIM_RUN " +
			"names determines which tools there are and what each may do. It exits at the end of its input.",
		Args: checked(cobra.NoArgs),
		RunE: works(func(cmd *cobra.Command, _ []string) error { return runMCPServe(cmd.Context(), d) }),
	}
}

func runMCPServe(ctx context.Context, d *Deps) error {
	tools, err := d.Tools()
	if err != nil {
		return err
	}
	s := mcp.Server{Tools: tools, Version: version(), Warn: d.warn}
	return s.Serve(ctx, d.In, d.Stdout)
}

// insideTools returns the tools of the run that OLLIM_RUN names.
func (d *Deps) insideTools() (*tools.Set, error) {
	h, err := d.Home()
	if err != nil {
		return nil, err
	}
	return h.Tools()
}

func newMCPTools(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(programs),
		Use:         "tools", Short: "List the tools of the run that OLLIM_RUN names", Hidden: true,
		Args: checked(cobra.NoArgs),
		RunE: works(func(*cobra.Command, []string) error {
			tools, err := d.insideTools()
			if err != nil {
				return err
			}
			return records(d, false, tools.List(), func(t engine.Tool) []string { return []string{t.Name, t.Description} })
		}),
	}
}
