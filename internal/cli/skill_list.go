package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/skill"
)

// skillRow is a skill as listings show it.
type skillRow struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	Commands     []string `json:"commands"`
	AllowedTools []string `json:"allowed_tools"`
	Path         string   `json:"path"`
}

func (r skillRow) cells() []string {
	return []string{r.Name, strconv.Itoa(len(r.Commands)), r.Description}
}

func newSkillList(d *Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Annotations: agentAll(),
		Use:         "list",
		Short:       "List skills: name, number of commands, description",
		Args:        checked(cobra.NoArgs),
		RunE:        inHome(d, func(_ context.Context, h app.Home, _ []string) error { return runSkillList(d, h, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

func runSkillList(d *Deps, h app.Home, asJSON bool) error {
	skills, faults, err := h.Skills().Load()
	for _, fault := range faults {
		d.warn(fault.Error())
	}
	if err != nil {
		return err
	}
	rows := make([]skillRow, 0, len(skills))
	for _, s := range skills {
		rows = append(rows, rowOfSkill(s))
	}
	return records(d, asJSON, rows, skillRow.cells)
}

func rowOfSkill(s skill.Skill) skillRow {
	return skillRow{
		Name: s.Name, Description: s.Description, Path: s.Path,
		Commands: append([]string{}, s.Commands()...), AllowedTools: append([]string{}, s.AllowedTools...), // [], never null
	}
}
