package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/state/skill"
)

func newSkill(d *Deps) *cobra.Command {
	return group("skill", "skills", "Show skills", newSkillList(d), newSkillShow(d), newSkillRender(d))
}

// explainSkill adds what to do about a skill that is not there.
func explainSkill(err error) error {
	var unknown *skill.Unknown
	if errors.As(err, &unknown) && len(unknown.Near) == 0 {
		return hint(err, "ollim skill list")
	}
	return err
}
