package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/skill"
)

func newSkill(d *deps) *cobra.Command {
	return group("skill", "Show skills",
		newList(d, agentAll(), "list", "List skills: name, number of commands, description", "NAME COMMANDS DESCRIPTION",
			func(context.Context) (rows []skillRow, err error) {
				h, err := d.Home()
				if err != nil {
					return nil, err
				}
				skills, faults, err := h.Skills.Load()
				for _, fault := range faults {
					d.warn(fault.Error())
				}
				for _, s := range skills {
					rows = append(rows, skillRow{
						Name: s.Name, Description: s.Description, Path: s.Path, // the lists are [], never null
						Commands: append([]string{}, s.Commands()...), AllowedTools: append([]string{}, s.AllowedTools...),
					})
				}
				return rows, err
			}, func(r skillRow) []any { return []any{r.Name, strconv.Itoa(len(r.Commands)), prose(r.Description)} }),
		command(agentAll(), "show NAME...", "Print SKILL.md files as they are",
			inHome(d, func(_ context.Context, h app.Home, args []string) error {
				d.pager.Page()
				return d.each("skill show", args, func(name string) error {
					text, err := h.Skills.Text(name)
					if err == nil {
						_, err = d.Out.Write(text)
					}
					return explainSkill(err)
				})
			})), newSkillRender(d))
}

func explainSkill(err error) error {
	if unknown, ok := errors.AsType[*plaintext.Unknown](err); ok && len(unknown.Near) == 0 {
		return hint(err, "ollim skill list")
	}
	return err
}

type skillRow struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	Commands     []string `json:"commands"`
	AllowedTools []string `json:"allowed_tools"`
	Path         string   `json:"path"`
}

func newSkillRender(d *deps) *cobra.Command {
	cmd := command(agentNever(nested), "render NAME [ARGS...]", "Print a skill as an agent would see it",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			s, err := h.Skills.Find(args[0])
			if err != nil {
				return explainSkill(err)
			}
			rendered := skill.Renderer{Dir: h.Dir.Path(), Env: h.ProgramEnv()}.Render(ctx, s)
			d.pager.Page()
			return d.answer(skill.WithArguments(rendered, strings.Join(args[1:], " ")), ctx.Err())
		}))
	cmd.Flags().SetInterspersed(false) // what follows NAME is the skill's
	return cmd
}
