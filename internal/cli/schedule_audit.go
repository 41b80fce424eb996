package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/slot"
)

func newScheduleAudit(d *deps) *cobra.Command {
	var since string
	var problems bool
	cmd := command(agentNever(programs), "audit [JOB]", "List past slots: id, slot, outcome, run; exits 1 if one is unaccounted for",
		func(_ *cobra.Command, args []string) error {
			return runScheduleAudit(d, strings.Join(args, ""), since, problems)
		})
	cmd.Flags().StringVar(&since, "since", "7d", "how far to look back, at most keep.runs")
	cmd.Flags().BoolVar(&problems, "problems", false, "list only the slots without a run that went well; the exit status is the same")
	return withJSON(d, cmd, jsonLines)
}

func runScheduleAudit(d *deps, name, since string, problems bool) error {
	from, err := d.past(since)
	if err != nil {
		return err
	}
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	id, err := auditedJob(h, name)
	if err != nil {
		return err
	}
	answers, err := h.Audit(from)
	if err != nil {
		return err
	}
	if id != "" {
		answers = slices.DeleteFunc(answers, func(a forecast.Answer) bool { return a.Job != id })
	}
	listed := answers
	if problems {
		listed = slices.DeleteFunc(slices.Clone(answers), func(a forecast.Answer) bool { return !a.Problem() })
	}
	if err := records(d, "ID SLOT OUTCOME RUN NAME", listed, func(a forecast.Answer) []any {
		return []any{a.Job, moment{a.Slot, a.Slot.Format(time.RFC3339), false}, state(a.Outcome), a.Run, brief(a.Name)}
	}); err != nil {
		return err
	}
	if err := d.flush(); err != nil { // the summary follows the list
		return err
	}
	d.note("%s", auditSummary(answers, since))
	if slices.ContainsFunc(answers, func(a forecast.Answer) bool { return a.Outcome == forecast.Unaccounted }) {
		return &reported{statusFailed}
	}
	return nil
}

// auditSummary counts the slots by their outcomes, the most frequent first.
func auditSummary(answers []forecast.Answer, since string) string {
	counts := map[string]int{}
	problems := 0
	for _, a := range answers {
		counts[a.Outcome]++
		if a.Problem() {
			problems++
		}
	}
	if len(answers) == 0 {
		return fmt.Sprintf("nothing was due in the last %s; what is due is listed %.0f minutes after its time", since, slot.Grace.Minutes())
	}
	return fmt.Sprintf("%s: %s; %s", plaintext.Count(len(answers), "slot"), plaintext.Tally(counts), plaintext.Count(problems, "problem"))
}

func auditedJob(h app.Home, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	s, err := h.Jobs.Load()
	if err != nil {
		return "", err
	}
	j, unknown := s.Find(name)
	if unknown == nil {
		return j.ID, nil
	}
	history, err := h.Slots.History()
	if err != nil {
		return "", err
	}
	for id, list := range history {
		if id == name || list[len(list)-1].Name == name {
			return id, nil
		}
	}
	return "", explain(unknown)
}
