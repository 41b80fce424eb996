package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

const (
	noBeginning = "[system] The beginning of this conversation is lost."
	maxToolName = 128
)

// Repair turns a conversation, as a kill or another program left it, into one that services accept. messages itself is not
// modified. Repair is idempotent.
//
//   - Adjacent messages of one role are merged. Blank texts, thoughts at the end of an answer, blocks of kinds that do not
//     belong there, and messages that are then empty are removed.
//   - Thoughts without a signature are kept in an answer that uses tools and removed from others. Services that do not sign
//     want them back there. They must not be sent to a service that signs; each message keeps other content without them.
//   - Every use of a tool has one result, at the beginning of the next message. A missing result becomes an error that says
//     so; a result without a use and a second result are removed. Ids and names are converted to an allowed form; a use
//     without a name is removed.
//   - The first message is the user's: an answer that comes first is preceded by a note that the beginning is lost.
//
// All text of the user and of answers is kept. The last message may be an answer, unless it uses tools.
func Repair(messages []Message) []Message {
	r := repair{ids: map[string]bool{}}
	for _, turn := range turns(messages) {
		if turn.Role == Assistant {
			r.answer(turn.Content)
		} else {
			r.said(turn.Content)
		}
	}
	r.said(nil)
	return r.out
}

// turns cleans messages, and merges adjacent messages of one role.
func turns(messages []Message) (list []Message) {
	for _, m := range messages {
		var content []Block
		for _, b := range m.Content {
			if belongs(b, m.Role) {
				content = append(content, b)
			}
		}
		list = join(list, m.Role, content)
	}
	all := list
	list = nil
	for _, m := range all {
		if !slices.ContainsFunc(m.Content, func(b Block) bool { return b.Type == ToolUse }) {
			m.Content = slices.DeleteFunc(m.Content, func(b Block) bool { return b.Type == ThinkingBlock && b.Signature == "" })
		}
		end := len(m.Content)
		for end > 0 && (m.Content[end-1].Type == ThinkingBlock || m.Content[end-1].Type == RedactedBlock) {
			end--
		}
		list = join(list, m.Role, m.Content[:end])
	}
	return list
}

// join appends content to the last message if it has the role, otherwise as a new message.
func join(list []Message, role string, content []Block) []Message {
	n := len(list)
	switch {
	case len(content) == 0:
		return list
	case n > 0 && list[n-1].Role == role:
		list[n-1].Content = append(list[n-1].Content, content...)
		return list
	}
	return append(list, Message{role, content})
}

// belongs reports whether a message of a role may have a block.
func belongs(b Block, role string) bool {
	switch b.Type {
	case TextBlock:
		return strings.TrimSpace(b.Text) != "" && (role == User || role == Assistant)
	case ThinkingBlock:
		return (b.Signature != "" || strings.TrimSpace(b.Thinking) != "") && role == Assistant
	case RedactedBlock:
		return b.Data != "" && role == Assistant
	case ToolUse:
		return b.Name != "" && role == Assistant
	case ToolResult:
		return role == User
	case ImageBlock, DocumentBlock:
		return b.Source != nil && role == User
	}
	return false
}

// repair is a repaired conversation that is being built.
type repair struct {
	out  []Message
	ids  map[string]bool // ids of all tool uses
	open []use           // tool uses without a result
}

// use is a tool use. Its id may have been replaced.
type use struct{ was, is string }

func (r *repair) answer(content []Block) {
	if len(r.out) == 0 {
		r.out = append(r.out, Said(User, noBeginning))
	}
	for i, b := range content {
		if b.Type != ToolUse {
			continue
		}
		u := use{b.ID, r.unique(cmp.Or(plaintext.Word(b.ID), "_"))}
		r.open = append(r.open, u)
		name := plaintext.Word(b.Name) // not empty, see belongs
		content[i].ID, content[i].Name = u.is, name[:min(len(name), maxToolName)]
		if !isObject(b.Input) {
			content[i].Input = json.RawMessage(`{}`)
		}
	}
	r.out = join(r.out, Assistant, content)
}

// said adds results for the open uses, and then the rest of the user's message.
func (r *repair) said(content []Block) {
	var results, rest, all []Block
	for _, b := range content {
		if b.Type == ToolResult {
			results = append(results, b)
		} else {
			rest = append(rest, b)
		}
	}
	for _, u := range r.open {
		answer := Block{Type: ToolResult, Content: interruptedText, IsError: true}
		if i := slices.IndexFunc(results, func(b Block) bool { return b.ToolUseID == u.was }); i >= 0 {
			answer = results[i]
			results = slices.Delete(results, i, i+1)
		}
		answer.ToolUseID = u.is
		all = append(all, answer)
	}
	r.open = nil
	r.out = join(r.out, User, append(all, rest...))
}

// unique returns id, with a number added if another use has it.
func (r *repair) unique(id string) string {
	free := id
	for n := 2; r.ids[free]; n++ {
		free = fmt.Sprintf("%s_%d", id, n)
	}
	r.ids[free] = true
	return free
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}
