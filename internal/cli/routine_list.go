package cli

import (
	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/state/job"
)

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
	var asJSON bool
	cmd := &cobra.Command{
		Annotations: agentAll(),
		Use:         "list",
		Short:       "List routines: id, name, on or off, cron line, zone, mode, description",
		Args:        checked(cobra.NoArgs),
		RunE:        works(func(*cobra.Command, []string) error { return runRoutineList(d, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

func runRoutineList(d *Deps, asJSON bool) error {
	s, h, err := d.shelf()
	if err != nil {
		return err
	}
	s = s.Only(job.Routine)
	rows := make([]routineRow, 0, len(s.Jobs))
	for _, j := range s.Jobs {
		rows = append(rows, routineRow{
			ID: j.ID, Name: j.Name(), Cron: j.Cron, Timezone: j.Zone(h.Config.Zone).String(), Mode: j.Mode(),
			Enabled: j.Enabled, Description: j.Description, Path: j.Path,
		})
	}
	return records(d, asJSON, rows, routineRow.cells)
}
