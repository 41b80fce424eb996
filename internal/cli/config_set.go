package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
)

func newConfigSet(d *deps) *cobra.Command {
	var yes bool
	cmd := command(agentNever(nested), "set KEY VALUE...", "Change one setting in config.yaml and keep the rest; several values make a list",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			values := args[1:]
			if len(values) > 1 && values[0] == "--" { // the end of the flags
				values = values[1:]
			}
			if args[0] == "engine" && len(values) == 2 && values[1] == "--yes" { // an engine is one word
				yes, values = true, values[:1]
			}
			return runConfigSet(ctx, d, h, args[0], values, yes)
		}))
	cmd.Flags().SetInterspersed(false) // a value may look like a flag: sh -c …
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "change the engine without asking about the sessions of the old one")
	return cmd
}

func runConfigSet(ctx context.Context, d *deps, h app.Home, key string, values []string, yes bool) error {
	s, err := h.ReadSetting(key, values, d.atShell())
	if err != nil {
		return err
	}
	if key == "engine" && len(values) == 1 {
		if err := d.announceCarry(ctx, h, values[0], yes); err != nil {
			return err
		}
	}
	if key == "engine" && slices.Equal(values, []string{engine.ClaudeCode}) && h.Config.Claude.Command == "" {
		command, err := h.UseClaude(ctx)
		if err != nil {
			return err
		}
		d.note("claude-code.command is set to %s", command)
	}
	if err := h.Set(ctx, key, s.Values...); err != nil {
		return err
	}
	if s.IsCommand() && len(s.Values) > 0 {
		d.note("%s is stored as %s", key, s)
	}
	return nil
}

// announceCarry lists on a terminal the sessions that another engine will continue, and asks whether to change the engine, unless yes is
// set. Elsewhere the next turn of each session reports it.
func (d *deps) announceCarry(ctx context.Context, h app.Home, name string, yes bool) error {
	if !isTerminal(d.Stderr) {
		return nil
	}
	list, err := h.CarriedOver(ctx, name)
	if err != nil || len(list) == 0 {
		return err
	}
	for _, c := range list {
		d.note("%s", printable(c.String()))
	}
	d.note("No model is asked for this, and it costs nothing. If you set the old engine again, the old sessions continue. To begin with a summary " +
		"instead of the last messages, answer no and run first: `ollim session compact main`")
	if yes || !isTerminal(d.In) {
		return nil
	}
	change, err := newAsker(d.In).agrees(ctx, d.Stderr, "Change the engine to "+printable(name)+"?", true)
	if err == nil && !change {
		err = &withStatus{errors.New("the engine was not changed"), statusFailed}
	}
	return err
}
