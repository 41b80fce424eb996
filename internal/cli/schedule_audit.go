package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/ledger"
	"github.com/ollim/ollim/internal/state/slot"
)

func newScheduleAudit(d *deps) *cobra.Command {
	var since string
	var problems, verify bool
	cmd := command(agentNever(programs), "audit [JOB]", "List past slots: id, slot, outcome, run; exits 1 if one is unaccounted for",
		func(_ *cobra.Command, args []string) error {
			return runScheduleAudit(d, strings.Join(args, ""), since, problems, verify)
		})
	cmd.Flags().StringVar(&since, "since", "7d", "how far to look back, at most keep.runs")
	cmd.Flags().BoolVar(&problems, "problems", false, "list only the slots without a run that went well; the exit status is the same")
	cmd.Flags().BoolVar(&verify, "verify", false, "also compare each fact in state/ledger with its hash; exits 1 if one was changed or removed")
	return withJSON(d, cmd, jsonLines)
}

func runScheduleAudit(d *deps, name, since string, problems, verify bool) error {
	from, err := d.past(since)
	if err != nil {
		return err
	}
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	id, err := h.ScheduledJob(name)
	if err != nil {
		return explain(err)
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
	var faults []ledger.Fault
	if verify {
		if faults, err = verifyLedger(d, h); err != nil {
			return err
		}
	}
	if len(faults) > 0 || slices.ContainsFunc(answers, func(a forecast.Answer) bool { return a.Outcome == forecast.Unaccounted }) {
		return &reported{statusFailed}
	}
	return nil
}

// verifyLedger prints what was changed in the ledger or removed from it.
func verifyLedger(d *deps, h app.Home) ([]ledger.Fault, error) {
	faults, facts, err := h.Ledger.Verify()
	for _, f := range faults {
		place := f.File
		if f.Line > 0 {
			place += ":" + strconv.Itoa(f.Line)
		}
		d.line("error", join("schedule audit", place, f.Text))
	}
	if err == nil && len(faults) == 0 {
		d.note("%s in the ledger, each as it was written", plaintext.Count(facts, "fact"))
	}
	return faults, err
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
