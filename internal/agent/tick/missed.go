package tick

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/slot"
)

// offAfter is the gap between ticks from which the machine counts as having been off.
const offAfter = 15 * time.Minute

// missedAgain is the time from one message about missed slots to the next. A machine that sleeps many times a day would otherwise send one
// each time.
const missedAgain = 24 * time.Hour

// Reasons of missed slots, as their claims keep them.
const (
	notStarted = "ollim tick ran, but no run began"
	oneForBoth = "one run answers this slot and the next"
)

// census counts the slots that one minute finds missed.
type census struct {
	page   *page
	faults yamldoc.Faults // of job files
	off    bool           // no tick ran for a while
	added  bool           // the page has more missed slots than before
	bound  bool           // the page has another time for the slots that are bound to this machine
	byFile map[string]missedByFile
}

type missedByFile struct {
	fault *yamldoc.Fault
	n     int
}

// missedSlots holds what the message about missed slots reports, once every slot has an outcome.
type missedSlots struct {
	From time.Time      `json:"from"`
	To   time.Time      `json:"to"`
	Why  string         `json:"why"`
	Jobs map[string]int `json:"jobs"`
}

// why returns why nothing answered a slot of a routine, and the fault of its file if it cannot be read.
func (c *census) why(schedules []slot.Schedule) (string, *yamldoc.Fault) {
	if len(schedules) > 0 {
		name := schedules[len(schedules)-1].Name
		for _, f := range c.faults {
			if filepath.Base(f.File) == name+".md" {
				return "its file was invalid: " + f.Error(), f
			}
		}
	}
	if c.off {
		return slot.WasOff, nil
	}
	return notStarted, nil
}

func (c *census) add(job string, at time.Time, fault *yamldoc.Fault) {
	if fault != nil {
		if c.byFile == nil {
			c.byFile = map[string]missedByFile{}
		}
		c.byFile[job] = missedByFile{fault, c.byFile[job].n + 1}
		return
	}
	c.added = true
	all := c.page.Missed
	if all == nil {
		why := notStarted
		if c.off {
			why = slot.WasOff
		}
		all = &missedSlots{From: at, Why: why, Jobs: map[string]int{}}
		c.page.Missed = all
	}
	all.To = at
	all.Jobs[job]++
}

// countByFile adds the missed slots to the causes of invalid files.
func (s slots) countByFile(ctx context.Context, c *census) (err error) {
	for job, missed := range c.byFile {
		err = errors.Join(err, s.m.firer().Reports.MissedByFile(ctx, missed.fault, job, missed.n))
	}
	return err
}

// tellMissed tells the owner which slots were missed, once. late is how many run late.
func (s slots) tellMissed(ctx context.Context, p *page, late int) error {
	files, err := s.m.Runner.Jobs.Load()
	if err != nil {
		return err
	}
	all, total := p.Missed, 0
	var names []string
	for _, id := range slices.Sorted(maps.Keys(all.Jobs)) {
		label := id
		if j, known := files.ByID(id); known {
			label = j.Label()
		}
		total += all.Jobs[id]
		names = append(names, fmt.Sprintf("%s %d", label, all.Jobs[id]))
	}
	const layout, most = "Mon 2 Jan 15:04", 10
	if more := len(names) - most; more > 0 {
		names = append(names[:most], "and "+plaintext.Count(more, "more job"))
	}
	text := fmt.Sprintf("%s were missed from %s to %s: %s (%s)", plaintext.Count(total, "slot"), all.From.In(s.m.Runner.Zone).Format(layout),
		all.To.In(s.m.Runner.Zone).Format(layout), all.Why, strings.Join(names, ", "))
	if total == 1 {
		text = fmt.Sprintf("%s missed its slot of %s: %s", strings.TrimSuffix(names[0], " 1"), all.From.In(s.m.Runner.Zone).Format(layout), all.Why)
	}
	if late == 1 {
		text += "; 1 more slot is run late now"
	}
	if late > 1 {
		text += fmt.Sprintf("; %d more slots are run late now", late)
	}
	return s.m.Runner.Notify().Tell(ctx, notify.Cause{
		Kind: notify.Slots, Subject: "missed", Name: "Missed slots", Text: text,
		Remedy: fmt.Sprintf("`ollim schedule audit --since %dd` lists them", int(s.m.now().Sub(all.From).Hours()/24)+1),
	})
}
