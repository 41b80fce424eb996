package cli

import "github.com/spf13/cobra"

func newSkillShow(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentAll(),
		Use:         "show NAME...",
		Short:       "Print SKILL.md files as they are",
		Args:        checked(cobra.MinimumNArgs(1)),
		RunE:        works(func(_ *cobra.Command, args []string) error { return runSkillShow(d, args) }),
	}
}

func runSkillShow(d *Deps, names []string) error {
	h, err := d.Home()
	if err != nil {
		return err
	}
	failed := failures{d: d, verb: "skill show"}
	for _, name := range names {
		text, err := h.Skills().Text(name)
		if err == nil {
			_, err = d.Out.Write(text)
		}
		failed.add(name, explainSkill(err))
	}
	return failed.err()
}
