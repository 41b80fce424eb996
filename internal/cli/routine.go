package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/tick"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/job"
)

func newRoutine(d *deps) *cobra.Command {
	return group("routine", "Manage routines: jobs with a cron line",
		newList(d, agentAll(), "list", "List routines: id, name, on or off, cron line, zone, mode, description",
			"ID NAME STATE CRON ZONE MODE DESCRIPTION", func(context.Context) (rows []routineRow, err error) {
				s, h, err := d.jobSet()
				for _, j := range s.Only(job.Routine).Jobs {
					rows = append(rows, routineRow{
						ID: j.ID, Name: j.Name(), Cron: j.Cron, Timezone: j.Zone(h.Config.Zone).String(), Mode: j.Mode(),
						Enabled: j.Enabled, Description: j.Description, Path: j.Path,
					})
				}
				return rows, err
			}, routineRow.cells), newJobShow(d, job.Routine), newRoutineAdd(d), newJobEdit(d, job.Routine),
		newJobRm(d, job.Routine, "Delete routine files, and the sessions of persistent routines"),
		newRoutineSwitch(d, "enable", "Enable routines", true),
		newRoutineSwitch(d, "disable", "Disable routines, without deleting them", false))
}

// jobPath returns the file of the job that name means, even if it cannot be read.
func jobPath(s job.Set, h app.Home, kind job.Kind, name string) (string, error) {
	j, err := s.Only(kind).Find(name)
	if faults, ok := errors.AsType[yamldoc.Faults](err); ok {
		return h.Dir.Path(faults[0].File), nil
	}
	return j.Path, explainFor(kind, err)
}

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

func (r routineRow) cells() []any {
	switched := state("on")
	if !r.Enabled {
		switched = "off"
	}
	return []any{r.ID, brief(r.Name), switched, r.Cron, r.Timezone, string(r.Mode), brief(r.Description)}
}

func newJobShow(d *deps, kind job.Kind) *cobra.Command {
	return command(agentAll(), "show JOB...", "Print "+string(kind)+" files as they are",
		func(_ *cobra.Command, args []string) error {
			s, h, err := d.jobSet(args...)
			if err != nil {
				return err
			}
			d.pager.Page()
			return d.each(string(kind)+" show", args, func(name string) error {
				path, err := jobPath(s, h, kind, name)
				if err != nil {
					return err
				}
				text, err := store.ReadText(path, maxShown, d.forwarded) // an agent may have made a link
				if err == nil {
					_, err = d.Out.Write(text)
				}
				return err
			})
		})
}

// maxShown is the largest file that is shown, in bytes. A file that is too large for a job can still be shown.
const maxShown = 64 << 20

func newRoutineAdd(d *deps) *cobra.Command {
	var o jobAdd
	cmd := command(agentNever(programs), "add [NAME] BODY|-", "Add a routine and print its id",
		func(cmd *cobra.Command, args []string) error {
			o.words(args)
			return runRoutineAdd(cmd.Context(), d, o)
		})
	o.fields.flags(cmd.Flags(), job.Routine)
	return cmd
}

func runRoutineAdd(ctx context.Context, d *deps, o jobAdd) error {
	h, j, err := o.read(d)
	if err != nil {
		return err
	}
	if j, err = o.create(ctx, d, h, j); err != nil {
		return err
	}
	if next, ok := j.Schedule.Next(d.Now(), j.Zone(h.Config.Zone)); ok && isTerminal(d.Stderr) {
		d.note("%s fires next %s", j.Path, clock(next.In(h.Config.Zone)))
		d.noteStalled(ctx, h)
	}
	return d.created(h, j, d.answer(j.ID, nil))
}

// noteStalled reports on a terminal why nothing fires jobs, if that is known, with the remedy.
func (d *deps) noteStalled(ctx context.Context, h app.Home) {
	if d.quiet || !isTerminal(d.Stderr) {
		return
	}
	if _, coming, _ := tick.Coming(h.Dir, d.Now()); coming {
		return
	}
	if why, remedy := d.doctor().Stalled(ctx); why != "" {
		d.tell("nothing fires it: "+why+":", remedy)
	}
}

func newRoutineSwitch(d *deps, verb, short string, on bool) *cobra.Command {
	return command(agentNever(nested), verb+" JOB...", short, func(_ *cobra.Command, args []string) error {
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
	})
}
