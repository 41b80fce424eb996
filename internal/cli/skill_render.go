package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/skill"
)

func newSkillRender(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Annotations: agentNever(nested),
		Use:         "render NAME [ARGS...]",
		Short:       "Print a skill as an agent would see it",
		Long: "Render prints a skill as an agent would see it. Each !`command` in it is run in the data directory, without a " +
			"shell, with the configured environment, and replaced by its output: at most 2,000 characters, at most 10 s for " +
			"each command and 30 s for all. A command that fails is replaced by its error in brackets. ARGS replace " +
			"$ARGUMENTS, or are appended.",
		Example: "  ollim skill render standup\n  ollim skill render review internal/platform/cron",
		Args:    checked(cobra.MinimumNArgs(1)),
		RunE: inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return runSkillRender(ctx, d, h, args[0], strings.Join(args[1:], " "))
		}),
	}
	cmd.Flags().SetInterspersed(false) // what follows NAME is the skill's
	return cmd
}

func runSkillRender(ctx context.Context, d *Deps, h app.Home, name, args string) error {
	s, err := h.Skills().Find(name)
	if err != nil {
		return explainSkill(err)
	}
	rendered := skill.Renderer{Dir: h.Dir.Path(), Env: h.ProgramEnv()}.Render(ctx, s)
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(d.Out, skill.WithArguments(rendered, args))
	return err
}
