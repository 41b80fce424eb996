package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/server/mcp"
	"github.com/ollim/ollim/internal/state/runlog"
)

func newMCP(d *Deps) *cobra.Command {
	return group("mcp", "mcps", "The agent's tools over the Model Context Protocol", newMCPServe(d), newMCPTools(d))
}

func newMCPServe(d *Deps) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the agent's tools on standard input and output",
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

// insideBox is the toolbox of the run that OLLIM_RUN names.
func (d *Deps) insideBox() (*tools.Box, error) {
	h, err := d.house()
	if err != nil {
		return nil, err
	}
	id, _ := d.Lookup("OLLIM_RUN")
	return d.runBox(h, id)
}

// runBox is the toolbox of a run in progress.
func (d *Deps) runBox(h house, id string) (*tools.Box, error) {
	r, err := h.inProgress(id)
	if err != nil {
		return nil, err
	}
	return d.firer(h).Tools(r), nil
}

// inProgress is a run that has begun and not ended.
func (h house) inProgress(id string) (*runlog.Run, error) {
	r, err := h.runs().At(id)
	if err != nil || r.Done() {
		return nil, fmt.Errorf("%w: OLLIM_RUN=%s is not a run in progress", errNotAllowed, id)
	}
	return r, nil
}

func newMCPTools(d *Deps) *cobra.Command {
	return &cobra.Command{
		Use: "tools", Short: "List the tools of the run that OLLIM_RUN names", Hidden: true,
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
