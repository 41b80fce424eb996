package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/yamldoc"
)

func newRoutine(d *Deps) *cobra.Command {
	return group("routine", "routines", "Routine files: jobs with a cron line",
		newRoutineList(d), newRoutineShow(d), newRoutineAdd(d), newRoutineEdit(d), newRoutineRm(d),
		newRoutineSwitch(d, "enable", "Let routines fire again", true),
		newRoutineSwitch(d, "disable", "Keep routines from firing, without deleting them", false))
}

// routinePath is the file that name means, whether or not it can be read.
func routinePath(s job.Shelf, h house, name string) (string, error) {
	j, err := s.Find(name)
	var faults yamldoc.Faults
	if errors.As(err, &faults) {
		return h.home.Path(faults[0].File), nil
	}
	return j.Path, explain(err)
}
