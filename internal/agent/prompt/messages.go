package prompt

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/update"
)

// CatchingUp opens an answer for which pending updates were popped.
const CatchingUp = "catching up on background activity…"

// Unreported is the update that stands in for a report which an agent owed and did not make.
func Unreported(label string) string {
	return fmt.Sprintf("%s ran but did not report what it did.", label)
}

// NotCompacted is the update about a session that is nearly as long as its model can read.
func NotCompacted(label, reason string) string {
	return fmt.Sprintf("%s: the session nearly fills the model's window and could not be compacted (%s). The next attempt is "+
		"made tomorrow, or when the session has grown by a twentieth of the window.", label, reason)
}

// ServerFailed is the update about an MCP server that a run could not use.
func ServerFailed(label, server, reason string) string {
	return fmt.Sprintf("%s: the MCP server %s could not be used: %s. It is reported once a day.", label, server, reason)
}

// Failure tells the owner that a job did not do its work. count is how often in a row.
func Failure(label, what, reason string, count int) string {
	s := fmt.Sprintf("%s %s", label, what)
	if count > 2 {
		s = fmt.Sprintf("%s %s, now %d times in a row", label, what, count)
	}
	if reason != "" {
		s += ": " + reason
	}
	return s
}

// BadFile tells the owner of a job file that cannot be used.
func BadFile(fault string) string {
	return fmt.Sprintf("A job file is invalid and cannot run until it is corrected (see `ollim check`): %s", fault)
}

// RefusedJob tells the owner of a job that was not allowed to run.
func RefusedJob(label, reason string) string {
	return fmt.Sprintf("%s was not run: %s", label, reason)
}

// GoneWebhook tells the owner of accepted events that cannot run because the file of their webhook is gone.
func GoneWebhook(id string) string {
	return fmt.Sprintf("Accepted events of the webhook %s wait, but its file is gone. They run if a file with this id is there again; "+
		"otherwise they are deleted when run records of their age are. To see them: `ollim status`", id)
}

// MissedSlot tells the owner of a time at which a routine did not run, because other runs held what was left of a limit.
func MissedSlot(label string, at time.Time, reason string) string {
	return fmt.Sprintf("%s did not run at %s: for 15 minutes other runs had reserved the rest of the spending limit (%s)",
		label, at.Format("2006-01-02 15:04"), reason)
}

// Unapproved tells the owner of a job that does not run because it asks for more than was approved. name is one that ollim
// approve takes, keys are the fields that ask.
func Unapproved(label, name string, keys []string) string {
	return fmt.Sprintf("%s waits for your approval: it asks for more than you have approved (%s). To see it and approve it: "+
		"`ollim approve %s`",
		label, strings.Join(keys, ", "), name)
}

// UnapprovedPolicy tells the owner that the file of tools for all runs is not as it was approved.
func UnapprovedPolicy(name string) string {
	return fmt.Sprintf("%s differs from what you approved, so it gives no tools. To see the changes and approve them: `ollim "+
		"approve %s`", name, name)
}

// Unavailable is a reminder in its own words, when no agent could be had to act on it.
func Unavailable(body string) string { return "(agent unavailable) " + body }

// OverdueReminder is a reminder whose time is long past.
type OverdueReminder struct {
	At   time.Time // in the zone to be shown
	Text string    // what it was to remind of
}

// overdueText is how much of each overdue reminder is told, in characters.
const overdueText = 200

// Overdue is one update for all reminders that were due more than 24 hours ago, in the order given. It fits into an update:
// those that found no place are counted.
func Overdue(list []OverdueReminder) string {
	const space = update.MaxChars - 100 // for the last line
	text := "These reminders were due more than 24 hours ago and were not run (they are kept in state/late):"
	for i, r := range list {
		line := fmt.Sprintf("\n- %s: %s", r.At.Format("2006-01-02 Mon 3:04 PM"), plaintext.Short(plaintext.Line(r.Text), overdueText))
		if utf8.RuneCountInString(text)+utf8.RuneCountInString(line) > space {
			return text + fmt.Sprintf("\nand %d more.", len(list)-i)
		}
		text += line
	}
	return text
}

// FollowUpTooLate is what an agent is notified that asks for a follow-up at the final check of its chain: what to do instead, with
// what its run has to speak with. pings and mode are those of a background run.
func FollowUpTooLate(foreground, pings bool, mode job.UpdateMode) string {
	const s = "This is the final check of the chain: no follow-up is possible. "
	switch {
	case foreground:
		return s + "If it is still open, tell the owner in your answer."
	case pings && mode == job.Blocked:
		return s + "If it is still open, ping the owner now with `ping_user`; otherwise end without."
	case pings && mode == job.Always:
		return s + "If it is still open, ping the owner now with `ping_user`. With or without a ping, call `report_updates`."
	case pings:
		return s + "If it is still open, ping the owner now with `ping_user`; otherwise use `report_updates`."
	case mode == job.Blocked:
		return s + "Finish the task and end."
	}
	return s + "If it is still open, say so with `report_updates`."
}

// StandardSummary is what a summary of a conversation is asked to keep without other instructions.
const StandardSummary = "Keep what is needed to go on: what the owner wants, decisions and their reasons, facts and figures, " +
	"open questions, and what was promised."
