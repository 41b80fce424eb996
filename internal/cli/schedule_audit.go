package cli

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/lock"
	"github.com/ollim/ollim/internal/run"
	"github.com/ollim/ollim/internal/schedule"
	"github.com/ollim/ollim/internal/slot"
)

type scheduleAuditOptions struct {
	job   string
	since string
	json  bool
}

func newScheduleAudit(d *Deps) *cobra.Command {
	var o scheduleAuditOptions
	cmd := &cobra.Command{
		Use:   "audit [JOB]",
		Short: "Say what became of every slot: id, slot, outcome, run; exit 1 when one is unaccounted for",
		Long: "Audit computes every slot that there should have been, by what the routine files said at the time, and joins it with what was " +
			"done. An outcome is that of a run, or missed (nobody answered in 15 minutes), running, or unaccounted: neither a scheduler nor " +
			"ollim tick was there. The last 15 minutes are left out.",
		Example: "  ollim schedule audit --since 1d || ollim ping \"a slot is unaccounted for\"",
		Args:    checked(cobra.MaximumNArgs(1)),
		RunE: works(func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.job = args[0]
			}
			return runScheduleAudit(d, o)
		}),
	}
	cmd.Flags().StringVar(&o.since, "since", "7d", "how far to look back")
	cmd.Flags().BoolVar(&o.json, "json", false, "one JSON object a line")
	return cmd
}

func runScheduleAudit(d *Deps, o scheduleAuditOptions) error {
	back, err := job.ParseDuration(o.since)
	if err != nil || back == 0 {
		return usage("--since %q: write a duration like 7d", o.since)
	}
	h, err := d.anyHouse()
	if err != nil {
		return err
	}
	id := o.job
	if o.job != "" {
		s, err := h.jobs().Load()
		if err != nil {
			return err
		}
		if j, err := s.Find(o.job); err == nil {
			id = j.ID
		}
	}
	now := d.Now()
	answers, err := schedule.Audit(h.slots(), now.Add(-back), now.Add(-schedule.Grace), h.became)
	if err != nil {
		return err
	}
	known := len(answers) == 0
	if o.job != "" {
		answers = slices.DeleteFunc(answers, func(a schedule.Answer) bool { return a.Job != id && a.Name != o.job })
		known = known || len(answers) > 0
	}
	if !known {
		d.note("%s had no slot in that time", o.job)
	}
	if err := records(d, o.json, answers, func(a schedule.Answer) []string {
		return []string{a.Job, a.Slot.Format(time.RFC3339), a.Outcome, a.Run, a.Name}
	}); err != nil {
		return err
	}
	if slices.ContainsFunc(answers, func(a schedule.Answer) bool { return a.Outcome == schedule.Unaccounted }) {
		return &reported{statusFailed}
	}
	return nil
}

func (h house) slots() slot.Book { return slot.Book{Home: h.home, Disk: h.disk, Zone: h.config.Zone} }

// became is the outcome of a run whose claim does not say it; "" is one that is under way.
func (h house) became(id string) string {
	r, err := h.runs().Load(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return schedule.Unaccounted // its process died before it had a record
	case err != nil || r.Done():
		return string(r.Outcome)
	case h.runs().Alive(r) || !lock.Free(h.home.JobLock(r.Job)):
		return ""
	}
	return string(run.Interrupted)
}
