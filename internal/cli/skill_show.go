package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
)

func newSkillShow(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentAll(),
		Use:         "show NAME...",
		Short:       "Print SKILL.md files as they are",
		Args:        checked(cobra.MinimumNArgs(1)),
		RunE:        inHome(d, func(_ context.Context, h app.Home, args []string) error { return runSkillShow(d, h, args) }),
	}
}

func runSkillShow(d *Deps, h app.Home, names []string) error {
	return d.each("skill show", names, func(name string) error {
		text, err := h.Skills().Text(name)
		if err == nil {
			_, err = d.Out.Write(text)
		}
		return explainSkill(err)
	})
}
