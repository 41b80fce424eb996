package prompt

import (
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/job"
	"github.com/ollim/ollim/internal/sanitize"
	"github.com/ollim/ollim/internal/schedule"
)

// pings is what a run needs to judge whether its one ping is worth it: what is left, and who else may want it.
func pings(b Brief) string {
	lines := []string{"PINGS: " + b.Budget.String()}
	if len(b.Forward.Entries) == 0 {
		lines = append(lines, "Upcoming bg tasks: none.")
	} else {
		lines = append(lines, fmt.Sprintf("Upcoming bg tasks (next %dh):", b.Forward.Hours))
	}
	for _, e := range b.Forward.Entries {
		lines = append(lines, entry(e, b.Now))
	}
	if b.Forward.Refills >= 1 {
		lines = append(lines, fmt.Sprintf("~%d refills before last task.", b.Forward.Refills))
	}
	instead := "`report_updates` is enough"
	if b.Job.Update == job.Blocked {
		instead = "send nothing"
	}
	return strings.Join(append(lines,
		"All background tasks share this budget: send at most one ping, embed or file in this run, and only if the owner would regret "+
			"missing it (the regret test); otherwise "+instead+".",
		"`critical=True` passes the budget and a busy owner: it is for what cannot wait, such as a loss or a missed deadline that can still be averted."), "\n")
}

// entry is a line of the forward schedule: - 9:30 AM: Label (silent) — "description" (routines/x.md) [tag].
func entry(e schedule.Entry, now time.Time) string {
	at, layout := e.At.In(now.Location()), "3:04 PM"
	if !sameDay(at, now) {
		layout = "Mon 3:04 PM"
	}
	s := fmt.Sprintf("- %s: %s", at.Format(layout), sanitize.Line(e.Label))
	if e.Silent {
		s += " (silent)"
	}
	if e.Description != "" { // whose quotes must not end ours
		s += fmt.Sprintf(` — "%s"`, strings.ReplaceAll(sanitize.Line(e.Description), `"`, "'"))
	}
	s += fmt.Sprintf(" (%s)", sanitize.Line(e.Path))
	if e.Tag != "" {
		s += fmt.Sprintf(" [%s]", e.Tag)
	}
	return s
}
