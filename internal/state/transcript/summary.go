package transcript

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// errNoSummary is the error of a compaction without a summary.
var errNoSummary = errors.New("the summary is empty")

// Summarized returns the entries of a compaction at an instant. It omits results of tools whose use was not kept, and resets the lengths
// in tokens to unknown. It omits thoughts, because services bind them to the previous conversation.
func Summarized(summary string, kept []Entry, at time.Time) ([]Entry, error) {
	if strings.TrimSpace(summary) == "" {
		return nil, errNoSummary
	}
	entries := []Entry{{Message: Said(User, summary), At: at}}
	begun := false // an answer has begun: tool results are valid only after one
	for _, e := range kept {
		e.Tokens, e.Full, e.Prefix, e.Message = 0, 0, "", e.Message.Unthought()
		if begun = begun || e.Message.Role == Assistant; !begun {
			e.Message.Content = slices.DeleteFunc(e.Message.Content, func(b Block) bool { return b.Type == ToolResult })
		}
		if begun || len(e.Message.Content) > 0 {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// Cut returns the index of the first entry to keep so that about the last keep messages stay. It keeps more if a tool's
// result would lose its call or a multi-message answer its beginning.
func Cut(entries []Entry, keep int) int {
	calls := map[string]int{} // index of the latest use with each id
	needs := make([]int, len(entries))
	for i, e := range entries {
		needs[i] = i
		for _, b := range e.Message.Content {
			call, known := calls[b.ToolUseID]
			if b.Type == ToolResult && known {
				needs[i] = min(needs[i], call)
			}
			if b.Type == ToolUse {
				calls[b.ID] = i
			}
		}
		if i > 0 && e.Message.Role == Assistant && entries[i-1].Message.Role == Assistant {
			needs[i] = min(needs[i], i-1)
		}
	}
	cut := min(max(len(entries)-keep, 0), len(entries))
	for i := len(entries) - 1; i >= cut && i >= 0; i-- {
		cut = min(cut, needs[i])
	}
	return cut
}
