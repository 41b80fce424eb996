package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// HeldByPause returns what a pause has held so far: "14 slots (Digest 12, Backup 2), 1 reminder (Passport)"; "" if it held nothing.
func (p Pauses) Held() (string, error) {
	slots, reminders, err := p.held()
	return strings.Join(slices.DeleteFunc([]string{slots, reminders}, func(s string) bool { return s == "" }), ", "), err
}

// held returns the slots and the reminders that a pause has held so far, as text; "" for none.
func (p Pauses) held() (slotsHeld, reminders string, err error) {
	pause, known := p.r.Spend.LastPause()
	if !known || pause.Since.IsZero() {
		return "", "", nil
	}
	now := p.r.Disk.Now()
	answers, err := forecast.Audit(p.r.Slots, pause.Since, now, func(slot.Claim) string { return "" })
	if err != nil {
		return "", "", err
	}
	counts, slots := map[string]int{}, 0
	for _, a := range answers {
		if a.Outcome == string(runlog.Paused) {
			counts[a.Name]++
			slots++
		}
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		names = append(names, fmt.Sprintf("%s %d", name, counts[name]))
	}
	if slots > 0 {
		slotsHeld = plaintext.Count(slots, "slot") + " (" + strings.Join(names, ", ") + ")"
	}
	files, err := p.r.Jobs.Outline()
	if err != nil {
		return "", "", err
	}
	var due []string
	for _, j := range files.Only(job.Reminder).Jobs {
		if j.Enabled && !j.RunAt.After(now) && (!j.Plain || pause.All) {
			due = append(due, plaintext.Short(j.Label(), 60))
		}
	}
	if len(due) > 0 {
		reminders = plaintext.Count(len(due), "reminder") + " (" + strings.Join(due, ", ") + ")"
	}
	return slotsHeld, reminders, nil
}

// EndPause ends a pause whose time is over, and tells the owner what it held.
func (p Pauses) End(ctx context.Context) error {
	if pause, known := p.r.Spend.LastPause(); !known || !pause.Over {
		return nil
	}
	slotsHeld, reminders, err := p.held()
	if err != nil {
		return err
	}
	c := notify.Cause{Kind: notify.News, Subject: "pause", Name: "The pause", Text: "The pause is over"}
	if slotsHeld != "" {
		c.Text += ". Not run: " + slotsHeld
		c.Remedy = "`ollim schedule audit --since 7d` lists the slots; `ollim fire JOB` runs one now"
	}
	if reminders != "" {
		c.Text += ". Due now: " + reminders
	}
	if slotsHeld+reminders != "" {
		err = p.r.Notify().Tell(ctx, c)
	}
	if err != nil {
		return err
	}
	return p.r.Spend.Resume(ctx)
}

// lateAfter is the delay after which a plain reminder says that it is late, hourLate the delay after which quiet hours hold it back.
const (
	lateAfter = 2 * time.Minute
	hourLate  = time.Hour
)

// lateness returns a text that says how late something is; "" if it is not late. due is nil if it had no time.
func (r *Runner) lateness(due *time.Time) string {
	if due == nil {
		return ""
	}
	now := r.Disk.Now().In(r.Zone)
	by := now.Sub(*due)
	if by <= lateAfter {
		return ""
	}
	return fmt.Sprintf("(late: it was due %s, %s)", due.In(r.Zone).Format("Mon 2 Jan 3:04 PM"), prompt.Ago(by))
}
