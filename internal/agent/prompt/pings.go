package prompt

import (
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
)

// pings is what a run needs to judge whether its one ping is worth it: what is left, and who else may want it.
func pings(b Input) string {
	lines := []string{"PINGS: " + b.Budget.String()}
	instead, refused := "`report_updates` is enough", "; use `report_updates` instead."
	if b.Task.Update == job.Blocked {
		instead, refused = "send nothing", "."
	}
	if b.Budget.Available < 1 {
		lines = append(lines, "No ping is left: a question will be refused, and so will a ping, embed or file unless it is critical (`critical=True`)"+refused)
	}
	switch {
	case b.Forward.Hours == 0 && len(b.Forward.Entries) > 0:
		lines = append(lines, "Upcoming bg tasks: none within 12 hours. Current and recent ones:")
	case b.Forward.Hours == 0:
		lines = append(lines, "Upcoming bg tasks: none within 12 hours.")
	default:
		lines = append(lines, fmt.Sprintf("Upcoming bg tasks (next %dh):", b.Forward.Hours))
	}
	for _, e := range b.Forward.Entries {
		lines = append(lines, entry(e, b.Now))
	}
	if b.Forward.Left > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more, not listed", b.Forward.Left))
	}
	if b.Forward.Refills >= 1 {
		lines = append(lines, fmt.Sprintf("~%d refills before last task.", b.Forward.Refills))
	}
	return strings.Join(append(lines,
		"All background tasks share this budget: send at most one ping, embed, file or question in this run, and only if the owner would regret "+
			"missing it (the regret test); otherwise "+instead+".",
		"`critical=True` bypasses the budget and a busy owner: use it only for what cannot wait, such as a loss or a missed "+
			"deadline that can still be averted."), "\n")
}

// entry is a line of the forward schedule: - 9:30 AM: Label (silent) — "description" (routines/x.md) [tag].
func entry(e forecast.Entry, now time.Time) string {
	s := fmt.Sprintf("- %s: %s", hour(e.At, now), plaintext.Line(e.Label))
	if e.Silent {
		s += " (silent)"
	}
	if e.Description != "" { // whose quotes must not end ours
		s += fmt.Sprintf(` — "%s"`, strings.ReplaceAll(plaintext.Line(e.Description), `"`, "'"))
	}
	s += fmt.Sprintf(" (%s)", plaintext.Line(e.Path))
	if e.Tag != "" {
		s += fmt.Sprintf(" [%s]", e.Tag)
	}
	if e.More > 0 {
		s += fmt.Sprintf(" and %d more until %s", e.More, hour(e.Last, now))
	}
	return s
}

// hour is a time of day, with the weekday when it is not today.
func hour(at, now time.Time) string {
	at = at.In(now.Location())
	if !sameDay(at, now) {
		return at.Format("Mon 3:04 PM")
	}
	return at.Format("3:04 PM")
}
