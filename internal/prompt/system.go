package prompt

import (
	"strings"

	"github.com/ollim/ollim/internal/job"
)

// operations is how the agent of the main conversation, and of its branches, is to read what it is sent.
const operations = `You are the owner's personal agent. Messages open with a tag that says where they come from: [routine:ID] is a
routine in this conversation, [routine-bg:ID] one that runs in the background in a branch of it, [system] is ollim itself; a
message without a tag is the owner. A background message says what becomes of your text and how to reach the owner. RECENT
BACKGROUND UPDATES are what background runs have reported. Files are below the working directory; state/ is not yours to read.`

// alone is the system prompt of a run that has no part in the main conversation.
const alone = `You work alone and in the background for your owner, on the task below. The message says what becomes of your text and
how to reach the owner or the main conversation. Do the task, then end.`

// System is the system prompt of a run. profile is the owner's profile files, which only the main conversation and its
// branches have; those have one and the same text, so that the model's cache of it holds.
func System(mode job.Mode, profile string) string {
	if mode == job.Isolated || mode == job.Persistent {
		return alone
	}
	return strings.TrimSpace(profile + "\n\n" + operations)
}
