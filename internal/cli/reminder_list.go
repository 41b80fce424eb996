package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/job"
)

// reminderRow is a reminder as listings show it.
type reminderRow struct {
	ID          string    `json:"id"`
	At          time.Time `json:"at"`
	State       string    `json:"state"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Path        string    `json:"path"`
}

func (r reminderRow) cells() []string {
	return []string{r.ID, clock(r.At), r.State, r.Description}
}

func newReminderList(d *Deps) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Annotations: map[string]string{agentKey: "all", toolKey: "list_reminders"},
		Use:         "list",
		Short:       "List reminders by time: id, time, state, description",
		Long: "The states are set (an agent reminder), plain (text only), off (enabled: false), running, again (failed once " +
			"and will be retried) and unapproved (see ollim approve).",
		Args: checked(cobra.NoArgs),
		RunE: works(func(*cobra.Command, []string) error { return runReminderList(d, asJSON) }),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

func runReminderList(d *Deps, asJSON bool) error {
	s, h, err := d.shelf()
	if err != nil {
		return err
	}
	jobs := s.Only(job.Reminder).Jobs
	slices.SortStableFunc(jobs, func(a, b job.Job) int { return a.RunAt.Compare(b.RunAt) })
	rows := make([]reminderRow, 0, len(jobs))
	for _, j := range jobs {
		state, err := reminderState(h, j)
		if err != nil {
			return err
		}
		what := j.Description
		if what == "" {
			what = strings.SplitN(j.Body, "\n", 2)[0]
		}
		rows = append(rows, reminderRow{j.ID, j.RunAt.In(h.Config.Zone), state, j.Name(), what, j.Path})
	}
	return records(d, asJSON, rows, reminderRow.cells)
}

// reminderState is what a reminder waits for.
func reminderState(h app.Home, j job.Job) (string, error) {
	subject, widened, err := h.Approvals().Of(j)
	approved := true
	if err == nil && widened {
		approved, err = h.Approvals().Approved(subject)
	}
	switch {
	case err != nil:
		return "", err
	case j.Attempt() != job.Waiting && running(h, j):
		return "running", nil
	case j.Attempt() != job.Waiting:
		return "again", nil
	case !approved:
		return "unapproved", nil
	case !j.Enabled:
		return "off", nil
	case j.Plain:
		return "plain", nil
	}
	return "set", nil
}
