package fire

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/heartbeat"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
	"github.com/ollim/ollim/internal/state/spend"
)

// Pauses says what a pause has held.
type Pauses struct{ r *run.Runner }

// HoldsReminders reports whether everything is paused, and plain reminders too.
func (p Pauses) HoldsReminders() bool {
	pause, _ := p.r.Spend.LastPause()
	return !pause.Over && pause.All
}

// Held returns what a pause has held so far: "14 slots (Digest 12, Backup 2), 1 reminder (Passport)"; "" if it held nothing.
func (p Pauses) Held() (string, error) {
	pause, _ := p.r.Spend.LastPause()
	slots, reminders, err := p.held(pause)
	return strings.Join(slices.DeleteFunc([]string{slots, reminders}, func(s string) bool { return s == "" }), ", "), err
}

// held returns the slots and the reminders that a pause, the zero value for none, has held so far, as text; "" for none.
func (p Pauses) held(pause spend.LastPause) (slotsHeld, reminders string, err error) {
	if pause.Since.IsZero() {
		return "", "", nil
	}
	now := p.r.Disk.Now()
	answers, err := forecast.Audit(p.r.Slots, pause.Since, now, p.r.Host.Name, func(slot.Claim) string { return "" })
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

// End ends a pause whose time is over, and tells the owner what it held.
func (p Pauses) End(ctx context.Context) error {
	pause, _ := p.r.Spend.LastPause()
	if !pause.Over {
		return nil
	}
	slotsHeld, reminders, err := p.held(pause)
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
		if err := p.r.Notify().Tell(ctx, c); err != nil {
			return err
		}
	}
	return p.r.Spend.Resume(ctx)
}

// Monitors calls the monitors of jobs.
type Monitors struct{ r *run.Runner }

// ownCall is how long after the end of a run its own process may still be calling the monitor.
const ownCall = 2 * heartbeat.Limit

// CallOwed makes the calls to monitors that ended processes did not make, and drops those that are too late.
func (m Monitors) CallOwed(ctx context.Context) error {
	return m.callOwed(ctx, func(_ string, record runlog.Record) bool {
		return record.Finished.Add(ownCall).Before(m.r.Disk.Now())
	})
}

// heartbeatLimit is how late a call may be made: a later one would hide that the job has not run since.
const heartbeatLimit = time.Hour

func (m Monitors) callOwed(ctx context.Context, due func(job string, record runlog.Record) bool) error {
	owed, err := m.r.Heartbeats.List()
	if len(owed) == 0 || err != nil {
		return err
	}
	over := heartbeat.Calls{}
	for job, c := range owed {
		switch record, err := m.r.Runs.Load(c.Run); {
		case err != nil, record.Done() && record.Outcome != runlog.OK, m.r.Disk.Now().Sub(c.At) > heartbeatLimit:
			over[job] = c
		case record.Done() && due(job, record) && m.Call(ctx, job, c.URL):
			over[job] = c
		}
	}
	if len(over) == 0 {
		return nil
	}
	return m.r.Heartbeats.Done(ctx, over)
}

// Call calls the URL of a monitor and reports whether it answered. A failure is reported until a call succeeds, on standard
// error as well.
func (m Monitors) Call(ctx context.Context, caller, url string) bool {
	c := notify.Cause{Kind: notify.Monitor, Subject: caller, Name: "The monitor of " + caller}
	err := heartbeat.Get(ctx, url)
	switch {
	case err == nil:
		m.r.Warn(m.r.Notify().Close(ctx, c.Key(), "answers again"))
	case ctx.Err() == nil:
		c.Text, c.Remedy = fmt.Sprintf("The monitor of %s does not answer: %v", caller, err), "check the network and the URL: `ollim doctor`"
		told, openErr := m.r.Notify().Open(ctx, c)
		if m.r.Warn(openErr); told {
			m.r.Warn(fmt.Errorf("heartbeat of %s: %w", caller, err))
		}
	}
	return err == nil
}
