package transcript

import (
	"slices"
	"strings"
	"time"
)

// Texts that the model reads in place of a missing answer. Without one, two messages of the user would be merged, see
// Repair.
const (
	// CutOff closes a turn that was ended by a failure, a stop or a kill.
	CutOff = "[This turn was cut off before it was finished. I do not go on with it unless I am asked again.]"
	noText = "[No answer.]"
	read   = "[I have read the summary and go on from there.]"
)

// isPrompt reports whether an entry is a prompt to the model rather than a result of its tools.
func (e Entry) isPrompt() bool {
	return e.Message.Role == User && !slices.ContainsFunc(e.Message.Content, func(b Block) bool { return b.Type == ToolResult })
}

// Turns returns how many prompts a conversation has, and when it began. A summary is no prompt.
func Turns(entries []Entry) (n int, since time.Time) {
	runs := slices.ContainsFunc(entries, func(e Entry) bool { return e.Run != "" })
	for _, e := range entries {
		if since.IsZero() {
			since = e.At
		}
		if e.isPrompt() && (e.Run != "" || !runs) {
			n++
		}
	}
	return n, since
}

// ends reports whether an entry may be the last of a turn: a finished answer without a tool use.
func (e Entry) ends() bool {
	return e.Message.Role == Assistant && !e.More &&
		!slices.ContainsFunc(e.Message.Content, func(b Block) bool { return b.Type == ToolUse })
}

// Answered reports whether the model has answered a prompt of a run.
func (t Transcript) Answered(run string) (bool, error) {
	entries, err := t.Load(nil)
	asked := false
	for _, e := range entries {
		if asked && e.Message.Role == Assistant {
			return true, nil
		}
		asked = e.Run == run
	}
	return false, err
}

// Settled returns a conversation as the model reads it before the next prompt. Every turn is closed, so that prompts
// are not merged into one message.
//
//   - A prompt of a run that was never answered is omitted: the model has not read it, and a later turn repeats it if need be.
//   - A turn that was cut off after the model had begun ends in an answer that says so. Uses of tools without a result get an
//     error as theirs, see Repair.
//   - A message without a run, such as the summary that a compaction begins with, gets an answer.
//
// The entries themselves are not modified.
func (h Header) Settled(entries []Entry) []Entry {
	settled := make([]Entry, 0, len(entries)+1)
	for i, e := range entries {
		if e.isPrompt() {
			if unread := i+1 == len(entries) || entries[i+1].isPrompt(); unread && e.Run != "" {
				continue
			}
			settled = h.closed(settled)
		}
		settled = append(settled, e)
	}
	return h.closed(settled)
}

// closed returns entries with an end of their last turn.
func (h Header) closed(entries []Entry) []Entry {
	if len(entries) == 0 {
		return nil
	}
	last, open := entries[len(entries)-1], unanswered(entries)
	text := CutOff
	switch {
	case last.isPrompt() && len(entries) == 1 && h.Compacted:
		text = read
	case last.isPrompt():
		text = noText
	case last.ends() && len(open) == 0 && strings.TrimSpace(last.Message.Text()) != "":
		return entries
	case last.ends() && len(open) == 0:
		text = noText
	}
	if len(open) > 0 {
		entries = append(entries, Entry{Message: Message{Role: User, Content: open}, At: last.At})
	}
	return append(entries, Entry{Message: Said(Assistant, text), At: last.At})
}

// unanswered returns results for the tool uses of the last turn that lack one.
func unanswered(entries []Entry) (results []Block) {
	answers := map[string]int{} // of later messages, by id
	for _, e := range slices.Backward(entries) {
		if e.isPrompt() {
			break
		}
		for _, b := range slices.Backward(e.Message.Content) {
			switch {
			case b.Type == ToolResult:
				answers[b.ToolUseID]++
			case b.Type == ToolUse && answers[b.ID] > 0:
				answers[b.ID]--
			case b.Type == ToolUse:
				results = append(results, Block{Type: ToolResult, ToolUseID: b.ID, Content: interruptedText, IsError: true})
			}
		}
	}
	slices.Reverse(results)
	return results
}

// Complete returns all complete turns of a conversation, and the transcript that holds the last of them: source, or its
// parent if source was compacted in the middle of the turn after it.
func (d Dir) Complete(source Transcript) (t Transcript, entries []Entry, err error) {
	line := []Transcript{source}
	if source.MidTurn {
		if line, err = d.Lineage(source); err != nil {
			return source, nil, err
		}
	}
	for _, t := range line {
		if entries, err = t.Load(nil); err != nil {
			return t, nil, err
		}
		if end := lastTurn(entries); end > 0 {
			return t, entries[:end], nil
		}
		if !t.MidTurn {
			return t, t.summary(entries), nil
		}
	}
	if entries, err = source.Load(nil); err != nil { // its parent was removed
		return source, nil, err
	}
	return source, source.summary(entries), nil
}

// summary returns the summary that a compaction begins with.
func (h Header) summary(entries []Entry) []Entry {
	if !h.Compacted {
		return nil
	}
	return entries[:min(1, len(entries))]
}

// lastTurn returns the number of entries up to the end of the last complete turn; 0 if there is none.
func lastTurn(entries []Entry) int {
	asked := true // a prompt follows the entry, or the end
	for i, e := range slices.Backward(entries) {
		if asked && e.ends() {
			return i + 1
		}
		asked = e.isPrompt()
	}
	return 0
}
