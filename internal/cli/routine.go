package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/job"
)

func newRoutine(d *Deps) *cobra.Command {
	return group("routine", "routines", "Manage routines: jobs with a cron line",
		newRoutineList(d), newJobShow(d, job.Routine), newRoutineAdd(d), newRoutineEdit(d), newRoutineRm(d),
		newRoutineSwitch(d, "enable", "Enable routines", true),
		newRoutineSwitch(d, "disable", "Disable routines, without deleting them", false))
}

// jobPath is the file of the job of a kind that name means, whether or not it can be read.
func jobPath(s job.Set, h app.Home, kind job.Kind, name string) (string, error) {
	j, err := s.Only(kind).Find(name)
	var faults yamldoc.Faults
	var unknown *job.Unknown
	switch {
	case errors.As(err, &faults):
		return h.Dir.Path(faults[0].File), nil
	case errors.As(err, &unknown) && unknown.Bad == 0 && len(unknown.Near) == 0:
		return "", hint(err, "ollim %s list", kind)
	}
	return j.Path, explain(err)
}

// routineRow is a routine as listings show it.
type routineRow struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Cron        string   `json:"cron"`
	Timezone    string   `json:"timezone"`
	Mode        job.Mode `json:"mode"`
	Enabled     bool     `json:"enabled"`
	Description string   `json:"description"`
	Path        string   `json:"path"`
}

func (r routineRow) cells() []string {
	state := "on"
	if !r.Enabled {
		state = "off"
	}
	return []string{r.ID, r.Name, state, r.Cron, r.Timezone, string(r.Mode), r.Description}
}

func newRoutineList(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Annotations: agentAll(),
		Use:         "list",
		Short:       "List routines: id, name, on or off, cron line, zone, mode, description",
	}
	return newList(d, cmd, func(context.Context) (rows []routineRow, err error) {
		s, h, err := d.jobSet()
		for _, j := range s.Only(job.Routine).Jobs {
			rows = append(rows, routineRow{
				ID: j.ID, Name: j.Name(), Cron: j.Cron, Timezone: j.Zone(h.Config.Zone).String(), Mode: j.Mode(),
				Enabled: j.Enabled, Description: j.Description, Path: j.Path,
			})
		}
		return rows, err
	}, routineRow.cells)
}

func newJobShow(d *Deps, kind job.Kind) *cobra.Command {
	return &cobra.Command{
		Annotations: agentAll(),
		Use:         "show JOB...",
		Short:       "Print " + string(kind) + " files as they are",
		Args:        checked(cobra.MinimumNArgs(1)),
		RunE: works(func(_ *cobra.Command, args []string) error {
			s, h, err := d.jobSet(args...)
			if err != nil {
				return err
			}
			return d.each(string(kind)+" show", args, func(name string) error {
				path, err := jobPath(s, h, kind, name)
				if err != nil {
					return err
				}
				text, err := store.ReadText(path, maxShown, false)
				if err == nil {
					_, err = d.Out.Write(text)
				}
				return err
			})
		}),
	}
}

// maxShown is more than a job file may have, so that one that is too large can be looked at.
const maxShown = 64 << 20

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
	s, h, err := d.jobSet()
	if err != nil {
		return err
	}
	if o.name == "" && o.body != "-" && !strings.ContainsAny(o.body, " \n") {
		return usage("%q is one word: give a NAME and a BODY", o.body)
	}
	if o.body, err = wordsOrInput(d, []string{o.body}); err != nil {
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
	return d.answer(j.ID, nil)
}

func newRoutineSwitch(d *Deps, verb, short string, on bool) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(nested),
		Use:         verb + " JOB...",
		Short:       short,
		Args:        checked(cobra.MinimumNArgs(1)),
		RunE: works(func(_ *cobra.Command, args []string) error {
			s, _, err := d.jobSet(args...)
			if err != nil {
				return err
			}
			return d.each("routine "+verb, args, func(name string) error {
				j, err := s.Only(job.Routine).Find(name)
				if err != nil || j.Enabled == on {
					return explain(err)
				}
				text, err := j.WithEnabled(on)
				if err != nil {
					return &withStatus{err, statusData}
				}
				return store.Replace(j.Path, text)
			})
		}),
	}
}

func newRoutineRm(d *Deps) *cobra.Command {
	return &cobra.Command{
		Annotations: agentNever(refused),
		Use:         "rm JOB...",
		Short:       "Delete routine files, and the sessions of persistent routines",
		Args:        checked(cobra.MinimumNArgs(1)),
		RunE: inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			s, err := h.Jobs().Load() // no warnings: the file to be deleted may be among the bad ones
			if err != nil {
				return err
			}
			return d.each("routine rm", args, func(name string) error { return removeRoutine(ctx, h, s, name) })
		}),
	}
}

// removeRoutine keeps the session of a file that could not be read: its id is not known for certain.
func removeRoutine(ctx context.Context, h app.Home, s job.Set, name string) error {
	path, err := jobPath(s, h, job.Routine, name)
	if err != nil {
		return err
	}
	j, findErr := s.Find(name)
	if findErr == nil {
		guard, err := lock.TryGuard(h.Dir.JobLock(j.ID))
		if errors.Is(err, lock.ErrBusy) {
			return hint(errors.Join(errors.New("is running"), err), "try again when its run has ended: ollim run list")
		}
		if err != nil {
			return err
		}
		defer guard.Release()
	}
	if err := store.Remove(path); err != nil || findErr != nil {
		return err
	}
	if err := h.Notices().Worked(ctx, j.ID); err != nil { // a new job of this id begins anew
		return err
	}
	return h.Sessions().RemoveRoutine(j.ID)
}
