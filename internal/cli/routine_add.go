package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/yamldoc"
)

type routineAddOptions struct {
	name, body string
	texts      map[string]*string
	bools      map[string]*bool
	lists      map[string]*[]string
	set        func(string) bool // whether a flag was given
}

// flags makes one of every field that a routine file may have.
func (o *routineAddOptions) flags(f *pflag.FlagSet) {
	o.texts, o.bools, o.lists = map[string]*string{}, map[string]*bool{}, map[string]*[]string{}
	for _, field := range job.Fields() {
		switch field.Kind {
		case job.Bool:
			o.bools[field.Key] = f.Bool(field.Key, field.Default == "true", field.Help)
		case job.List:
			o.lists[field.Key] = f.StringArray(field.Key, nil, field.Help+" (repeat the flag)")
		default:
			o.texts[field.Key] = f.String(field.Key, "", field.Help)
		}
	}
	o.set = f.Changed
}

func newRoutineAdd(d *Deps) *cobra.Command {
	var o routineAddOptions
	cmd := &cobra.Command{
		Use:   "add [NAME] BODY|-",
		Short: "Write a new routine file and print the routine's id",
		Long: "Add writes routines/NAME.md with the given fields and the body, the prompt, which - reads from standard input. " +
			"Without NAME the file is named after the description, else after the body. Every field of ollim-routine(5) is a flag.",
		Example: `  ollim routine add disk --cron @daily --background "Say which disk is nearly full."`,
		Args:    checked(cobra.RangeArgs(1, 2)),
		RunE: works(func(_ *cobra.Command, args []string) error {
			o.body = args[len(args)-1]
			if len(args) == 2 {
				o.name = args[0]
			}
			return runRoutineAdd(d, o)
		}),
	}
	o.flags(cmd.Flags())
	return cmd
}

func runRoutineAdd(d *Deps, o routineAddOptions) error {
	s, h, err := d.shelf()
	if err != nil {
		return err
	}
	if err := o.readBody(d); err != nil {
		return err
	}
	id := *o.texts["id"]
	if id == "" {
		if id, err = job.NewID(d.Random); err != nil {
			return err
		}
	}
	j, err := o.routine(id)
	if err != nil {
		return err
	}
	for _, other := range s.Jobs {
		if other.ID == j.ID {
			return &withStatus{fmt.Errorf("--id: %q is the id of %s", j.ID, other.Path), statusData}
		}
	}
	if _, err := s.Find(j.ID); as[yamldoc.Faults](err) {
		return &withStatus{fmt.Errorf("--id: %q is in use: %w", j.ID, err), statusData}
	}
	j, err = h.jobs().Create(j, o.name)
	if errors.Is(err, fs.ErrExist) {
		return hint(&withStatus{fmt.Errorf("%s: exists already", j.Path), statusData}, "ollim routine edit %s", o.name)
	}
	if err != nil {
		return err
	}
	if next, ok := j.Schedule.Next(d.Now(), j.Zone(h.config.Zone)); ok {
		d.note("%s fires next %s, once its schedule is in cron or systemd", j.Path, clock(next.In(h.config.Zone)))
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

// routine goes through the file form, so that a flag means exactly what the same line in a file would.
func (o *routineAddOptions) routine(id string) (job.Job, error) {
	if o.name != "" && job.Slug(o.name) != o.name {
		return job.Job{}, usage("name %q: lower-case letters, digits and hyphens, such as %s", o.name, cmp.Or(job.Slug(o.name), "daily-market"))
	}
	var pairs []yamldoc.Pair
	for _, f := range job.Fields() {
		switch {
		case f.Key == "id":
			pairs = append(pairs, yamldoc.Pair{Key: f.Key, Value: id})
		case !o.set(f.Key):
		case f.Kind == job.Bool:
			pairs = append(pairs, yamldoc.Pair{Key: f.Key, Value: *o.bools[f.Key]})
		case f.Kind == job.List:
			pairs = append(pairs, yamldoc.Pair{Key: f.Key, Value: *o.lists[f.Key]})
		default:
			pairs = append(pairs, yamldoc.Pair{Key: f.Key, Value: plainScalar(f.Key, *o.texts[f.Key])})
		}
	}
	text, err := yamldoc.NewPage(pairs, strings.Trim(o.body, "\n"))
	if err != nil {
		return job.Job{}, &withStatus{err, statusData}
	}
	j, err := job.Parse(job.Routine, "flags", text)
	return j, asFlags(err)
}

// plainScalar gives a number its type, where a file would have one.
func plainScalar(key, text string) any {
	if key != "max-cost" && key != "thinking" {
		return text
	}
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	if text == "true" || text == "false" {
		return text == "true"
	}
	return text
}

// asFlags names flags where the faults of a file name keys.
func asFlags(err error) error {
	var faults yamldoc.Faults
	if !errors.As(err, &faults) {
		return err
	}
	first := faults[0]
	reason := first.Reason
	if first.Key != "" {
		reason = "--" + first.Key + ": " + reason
	}
	return &withStatus{errors.New(reason), statusData}
}
