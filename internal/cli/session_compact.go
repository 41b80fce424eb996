package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/fire"
)

func newSessionCompact(d *Deps) *cobra.Command {
	var engine string
	cmd := &cobra.Command{
		Use:   "compact SESSION INSTRUCTIONS...",
		Short: "Replace a session by a summary made by your instructions; the old transcript stays",
		Long: "Compact begins a new session that holds a summary of the old one and makes it the one that goes on. Typed inside a run it " +
			"notes the wish instead, as the agent's compact_session does, and the session is compacted when the turn ends.",
		Example: `  ollim session compact routine:daily-market "keep positions and price levels"`,
		Args:    checked(cobra.MinimumNArgs(2)),
		RunE: works(func(cmd *cobra.Command, args []string) error {
			return runSessionCompact(cmd.Context(), d, args[0], strings.Join(args[1:], " "), engine)
		}),
	}
	cmd.Flags().StringVar(&engine, "engine", "", "the engine that holds it (default the routine's, else the configured one)")
	return cmd
}

func runSessionCompact(ctx context.Context, d *Deps, name, instructions, engine string) error {
	if strings.TrimSpace(instructions) == "" {
		return usage("the instructions are empty: say what must survive")
	}
	h, err := d.house()
	if err != nil {
		return err
	}
	n, err := d.sessionName(h, name)
	if err != nil {
		return err
	}
	if id, inside := d.Lookup("OLLIM_RUN"); inside && id != "" {
		return d.wishInRun(ctx, h, id, n, instructions)
	}
	if _, err := n.id(h.sessions()); err != nil {
		return noSession(name, err)
	}
	if engine == "" && n.routine != "" {
		shelf, err := h.jobs().Load()
		if err != nil {
			return err
		}
		if j, err := shelf.Find(n.routine); err == nil {
			engine = j.Engine
		}
	}
	r, err := d.firer(h).CompactSession(ctx, n.routine, instructions, fire.Options{Engine: engine})
	if r.ID == "" {
		return explain(err)
	}
	o := fireOptions{}
	if err := o.verdict(d, r, err); err != nil {
		return err
	}
	_, err = fmt.Fprintln(d.Out, r.SessionAfter)
	return err
}

// wishInRun is the compact_session tool, typed.
func (d *Deps) wishInRun(ctx context.Context, h house, id string, n sessionName, instructions string) error {
	box, err := d.runBox(h, id)
	if err != nil {
		return err
	}
	if n.routine != box.Run.Job {
		return fmt.Errorf("%w: a run can compact its own session only", errNotAllowed)
	}
	input, err := json.Marshal(map[string]string{"instructions": instructions})
	if err != nil {
		return err
	}
	if answer := box.Call(ctx, "compact_session", input); answer.IsError {
		return fmt.Errorf("%w: %s", errNotAllowed, answer.Text)
	}
	return nil
}
