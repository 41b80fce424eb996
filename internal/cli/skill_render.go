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
		Short:       "Run a skill's commands and print what an agent would see",
		Long: "Render prints a skill as an agent would see it. Each !`command` in it is run in the data directory, without a shell, under " +
			"the environment of the settings, and replaced by what it prints: at most 2,000 characters, after at most 10 s, and 30 s for " +
			"all. What goes wrong stands in its place, in brackets. ARGS stand for $ARGUMENTS, or at the end.",
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
