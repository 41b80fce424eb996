package app

import (
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/gate"
	"github.com/ollim/ollim/internal/state/job"
)

// GateState returns what is known about the gate of a job with gate-audit, also as a sentence without a full stop; "" for another job.
func (h Home) GateState(j job.Job) (known gate.Gate, text string, err error) {
	if j.Gate == "" || j.GateAudit == 0 {
		return known, "", nil
	}
	s, _, err := h.Approvals.Of(j)
	if err == nil {
		known, err = h.Gates.Of(j.ID, s.Gate(j.Gate))
	}
	switch {
	case err != nil:
		return known, "", err
	case known.Off != "":
		text = fmt.Sprintf("the gate has been off since %s, and every fire asks the model: it would have skipped the run %s, which %s",
			known.OffAt.In(h.Config.Zone).Format(time.DateTime), known.Off, known.Told)
	default:
		text = fmt.Sprintf("the gate is on: it closed for %s since the last audit, every %s such fire asks the model all the same, and %s passed",
			plaintext.Count(known.Closed, "fire"), ordinal(j.GateAudit), plaintext.Count(known.Passed, "audit"))
	}
	return known, text, nil
}

// ordinal returns a number as in "10th".
func ordinal(n int) string {
	end := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			end = "st"
		case 2:
			end = "nd"
		case 3:
			end = "rd"
		}
	}
	return fmt.Sprint(n, end)
}
