package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
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
