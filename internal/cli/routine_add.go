package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/state/job"
)

type routineAddOptions struct {
	name, body string
	fields     jobFlags
}

func newRoutineAdd(d *Deps) *cobra.Command {
	var o routineAddOptions
	cmd := &cobra.Command{
		Annotations: agentNever(programs),
		Use:         "add [NAME] BODY|-",
		Short:       "Add a routine and print its id",
		Long: "Add creates routines/NAME.md with the given fields. BODY is the prompt; - reads it from standard input. " +
			"Without NAME the file is named after the description, else after the body. Every field of ollim-routine(5) is a " +
			"flag.",
		Example: `  ollim routine add disk --cron @daily --background --allowed-tools "Bash(df -h)" "Run df -h. Is a disk nearly full?"`,
		Args:    checked(cobra.RangeArgs(1, 2)),
		RunE: works(func(cmd *cobra.Command, args []string) error {
			o.body = args[len(args)-1]
			if len(args) == 2 {
				o.name = args[0]
			}
			return runRoutineAdd(cmd.Context(), d, o)
		}),
	}
	o.fields.flags(cmd.Flags(), job.Routine)
	return cmd
}

func runRoutineAdd(ctx context.Context, d *Deps, o routineAddOptions) error {
	s, h, err := d.shelf()
	if err != nil {
		return err
	}
	if err := o.readBody(d); err != nil {
		return err
	}
	if o.name != "" && job.Slug(o.name) != o.name {
		return usage("name %q: lower-case letters, digits and hyphens, such as %s", o.name, cmp.Or(job.Slug(o.name), "daily-market"))
	}
	j, err := o.fields.job(d, s, o.body)
	if err != nil {
		return err
	}
	j, err = h.Jobs().Create(j, o.name)
	if errors.Is(err, fs.ErrExist) {
		return hint(&withStatus{fmt.Errorf("%s: already exists", j.Path), statusData}, "ollim routine edit %s", o.name)
	}
	if err != nil {
		return err
	}
	if err := d.approveOwn(ctx, h, j); err != nil {
		return err
	}
	if next, ok := j.Schedule.Next(d.Now(), j.Zone(h.Config.Zone)); ok {
		d.note("%s fires next %s, once its schedule is in cron or systemd", j.Path, clock(next.In(h.Config.Zone)))
	}
	_, err = fmt.Fprintln(d.Out, j.ID)
	return err
}

func (o *routineAddOptions) readBody(d *Deps) error {
	switch {
	case o.body == "-":
		text, err := readInput(d.In)
		o.body = text
		return err
	case o.name == "" && !strings.ContainsAny(o.body, " \n"):
		return usage("%q is one word: give a NAME and a BODY", o.body)
	}
	return nil
}
