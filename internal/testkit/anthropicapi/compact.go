package anthropicapi

import (
	"fmt"
	"strings"
)

// IsCompaction reports whether claude requests a summary of the conversation, by /compact or automatically.
func (q Request) IsCompaction() bool {
	return strings.Contains(q.LastUserText(), "CRITICAL: Respond with TEXT ONLY")
}

// Instructions returns the additional instructions of a compaction, or "".
func (q Request) Instructions() string {
	_, rest, _ := strings.Cut(q.LastUserText(), "Additional Instructions:\n")
	text, _, _ := strings.Cut(rest, "\n\nREMINDER")
	return strings.TrimSpace(text)
}

// summary answers a compaction.
func summary(q Request) Reply {
	return Reply{Text: "<analysis>\nNone, this is a test.\n</analysis>\n\n<summary>\nSummary of " +
		fmt.Sprint(len(q.Messages)) + " messages. Instructions: " + q.Instructions() + "\n</summary>"}
}
