package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/server/mcp"
)

func newMCP(d *Deps) *cobra.Command {
	return group("mcp", "mcps", "The agent's tools over the Model Context Protocol", newMCPServe(d), newMCPTools(d))
}

func newMCPServe(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(programs),
		Use:         "serve",
		Short:       "Serve the agent's tools on standard input and output",
		Long: "Serve speaks the Model Context Protocol over standard input and output. Which tools there are, and what each may do, is " +
			"decided by the record of the run that OLLIM_RUN names. It ends with its input.",
		Args: checked(cobra.NoArgs),
		RunE: works(func(cmd *cobra.Command, _ []string) error { return runMCPServe(cmd.Context(), d) }),
	}
}

func runMCPServe(ctx context.Context, d *Deps) error {
	box, err := d.insideBox()
	if err != nil {
		return err
	}
	s := mcp.Server{Tools: box, Version: version(), Warn: d.warn}
	return s.Serve(ctx, d.In, d.Stdout)
}

// insideBox returns the toolbox of the run that OLLIM_RUN names.
func (d *Deps) insideBox() (*tools.Set, error) {
	h, err := d.Home()
	if err != nil {
		return nil, err
	}
	return h.Box()
}

func newMCPTools(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(programs),
		Use:         "tools", Short: "List the tools of the run that OLLIM_RUN names", Hidden: true,
		Args: checked(cobra.NoArgs),
		RunE: works(func(*cobra.Command, []string) error {
			box, err := d.insideBox()
			if err != nil {
				return err
			}
			t := d.table()
			defer t.end()
			for _, tool := range box.List() {
				t.row(tool.Name, tool.Description)
			}
			return nil
		}),
	}
}
