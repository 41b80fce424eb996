// Package prompt writes everything that is said to an agent, and what the owner is told in ollim's own words. It is pure
// text: facts go in, a prompt comes out. The facts are fixed by the behaviour document, section 3; the wording is ours.
//
// A prompt names no tool that its run does not have. What others wrote (updates, what was piped in, a gate's output, a
// payload) stands indented or quoted, so that no line of it begins at the margin and passes for one of ours.
package prompt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/budget"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

// Brief is what a fire tells its agent.
type Brief struct {
	Job     job.Job
	Now     time.Time // in the zone to be shown
	Late    time.Time // when it was scheduled, if that is long enough ago to be told; else zero
	Busy    bool      // the owner is in mid-conversation
	Updates []update.Update
	Lost    bool // the session to continue was not there any more

	Budget  budget.Status    // of pings
	Forward forecast.Forward // what other background tasks lie ahead
	Tools   []string         // the patterns in force for the engine's tools, told when the job asks for tools of its own

	Compaction runlog.Compaction // of the session, since the agent's previous turn
	Gate       string            // what the job's gate said
	Input      string            // piped in by whoever fired the job
	Fence      string            // nobody can guess it: what is piped in stands as it is, between two lines of it; "": it is indented
	Payload    []Datum           // what a webhook was called with
}

// Datum is one validated value of a webhook's payload.
type Datum struct {
	Key   string
	Value string // as JSON
}

// Build is the whole prompt: tag and time, what the job must know, pending updates, the body, and data that came with it.
func Build(b Brief) string {
	parts := []string{opening(b)}
	if b.Job.Background {
		parts = append(parts, preamble(b)...)
	} else {
		parts = append(parts, help(b.Job)...)
	}
	parts = append(parts, notes(b)...)
	if len(b.Updates) > 0 {
		parts = append(parts, updates(b))
	}
	if b.Job.Kind == job.Webhook {
		parts = append(parts, webhook(b)...)
	} else {
		parts = append(parts, b.Job.Body)
	}
	parts = append(parts, data("GATE OUTPUT", b.Gate)...)
	if b.Fence != "" {
		parts = append(parts, fenced(b.Input, b.Fence)...)
	} else {
		parts = append(parts, data("INPUT", b.Input)...)
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// opening is the first line: tag, late marker, time.
func opening(b Brief) string {
	words := []string{tag(b.Job), late(b), b.Now.Format("[2006-01-02 Mon 03:04 PM MST]")}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// tag says where a message comes from; the owner's own words have none.
func tag(j job.Job) string {
	switch j.Kind {
	case job.Webhook:
		return fmt.Sprintf("[%s:%s]", j.Kind, j.ID)
	case job.Routine, job.Reminder:
		if j.Background {
			return fmt.Sprintf("[%s-bg:%s]", j.Kind, j.ID)
		}
		return fmt.Sprintf("[%s:%s]", j.Kind, j.ID)
	}
	return ""
}

// late says when a run should have been that did not start in time.
func late(b Brief) string {
	if b.Late.IsZero() {
		return ""
	}
	at, layout := b.Late.In(b.Now.Location()), "3:04 PM"
	if !sameDay(at, b.Now) {
		layout = "2006-01-02 Mon 3:04 PM"
	}
	return fmt.Sprintf("[late: was scheduled for %s, running now]", at.Format(layout))
}

func sameDay(a, b time.Time) bool { return a.Format(time.DateOnly) == b.Format(time.DateOnly) }

// notes say what became of the session since the previous fire.
func notes(b Brief) []string {
	switch {
	case b.Lost:
		return []string{"NOTE: Your earlier session is gone and could not be resumed. You start without its context."}
	case b.Job.Mode() != job.Persistent:
	case b.Compaction == runlog.CompactionDone:
		return []string{"NOTE: Your session was compacted in your previous fire: of what came before you have the summary."}
	case b.Compaction == runlog.CompactionFailed:
		return []string{"NOTE: The compaction that you requested in your previous fire was not carried out: your session is as it was. " +
			"If it is still needed, call `compact_session` again."}
	}
	return nil
}

// Headers over pending updates, fixed by seed 2.
const (
	headerMain = "RECENT BACKGROUND UPDATES (mention key findings in your response):"
	headerFork = "RECENT BACKGROUND UPDATES (read-only — main session will also see these):"
)

func updates(b Brief) string {
	header := headerMain
	if b.Job.Background {
		header = headerFork
	}
	lines := []string{header}
	for _, u := range b.Updates {
		lines = append(lines, fmt.Sprintf("- (%s) %s", Ago(b.Now.Sub(u.TS)), indent(u.Message)))
	}
	return strings.Join(lines, "\n")
}

// Ago says how long ago something was, in the largest unit that fits.
func Ago(d time.Duration) string {
	unit := func(n time.Duration, name string) string {
		if n == 1 {
			return "1 " + name + " ago"
		}
		return fmt.Sprintf("%d %ss ago", n, name)
	}
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return unit(d/time.Minute, "minute")
	case d < 24*time.Hour:
		return unit(d/time.Hour, "hour")
	}
	return unit(d/(24*time.Hour), "day")
}

// Nudge reminds an agent of the report that it owes before its run may end.
func Nudge(mode job.UpdateMode) string {
	if mode == job.Always {
		return "[system] You must call `report_updates` before this run ends. Do it now, in one or two sentences."
	}
	return "[system] You sent the owner something but did not report it. Call `report_updates` now, so that the main session knows."
}
