package prompt

import (
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/state/job"
)

// CatchingUp opens an answer for which pending updates were popped.
const CatchingUp = "catching up on background activity…"

// Unapproved tells the owner of a job that does not run because it asks for more than was approved. name is one that ollim
// approve takes, keys are the fields that ask.
func Unapproved(label, name string, keys []string) string {
	return fmt.Sprintf("%s waits for your approval: it asks for more than you have approved (%s). To see it and approve it: "+
		"`ollim approve %s`",
		label, strings.Join(keys, ", "), name)
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
