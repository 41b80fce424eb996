package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// draft is an answer while it comes in.
type draft struct {
	delta func(text string) error
	parts []*part
	stop  string
	usage runlog.Usage
	whole bool // its end has come
}

// part is one block. What grows is kept apart: adding to a string copies it each time.
type part struct {
	transcript.Block
	grown  strings.Builder // the text, the thoughts, or the input of a tool
	done   bool
	number int // of a call, as the service numbers it
}

func (d *draft) add(b transcript.Block) *part {
	p := &part{Block: b}
	d.parts = append(d.parts, p)
	return p
}

// grow adds to a part and passes on what is text.
func (d *draft) grow(p *part, more string) error {
	p.grown.WriteString(more)
	if more == "" || d.delta == nil || p.Type != transcript.TextBlock {
		return nil
	}
	return d.delta(more)
}

// answer is the draft as it stands, in answer to r.
func (d *draft) answer(r Request) Answer {
	a := Answer{Message: transcript.Message{Role: transcript.Assistant}, Usage: d.usage}
	for i, p := range d.parts {
		if b, ok := p.block((d.stop == MaxTokens || d.stop == fullWindow) && i == len(d.parts)-1); ok {
			a.Message.Content = append(a.Message.Content, b)
		}
	}
	uses := nameUses(a.Message.Content, r.Messages)
	if !d.whole {
		return a
	}
	a.Stop = cmp.Or(d.stop, EndTurn)
	switch {
	case uses && a.Stop == EndTurn: // Ollama and others say "stop" all the same
		a.Stop = toolUse
	case !uses && a.Stop == toolUse:
		a.Stop = EndTurn
	}
	return a
}

// end returns the whole answer, or an error if it broke off because the window of the model was full.
func (d *draft) end(r Request, host string) (Answer, error) {
	if d.whole = d.stop != fullWindow; !d.whole {
		return d.answer(r), fmt.Errorf("%w: %s: the context window is full", ErrTooLong, host)
	}
	return d.answer(r), nil
}

// block is the part, unless there is nothing that could be kept. At the limit of the answer the last use of a tool is as a rule
// one that was cut off, which no service says.
func (p *part) block(atLimit bool) (transcript.Block, bool) {
	b, grown := p.Block, p.grown.String()
	switch b.Type {
	case transcript.TextBlock:
		b.Text = grown
		return b, grown != ""
	case transcript.ThinkingBlock:
		b.Thinking = grown
		return b, p.done && grown+b.Signature != ""
	case transcript.ToolUse:
		b.Input = object(cmp.Or(grown, string(b.Input)))
		return b, p.done && (!atLimit || isObject([]byte(grown)))
	}
	return b, p.done
}

// object makes a JSON object of a tool's input. What is none is put into one that no tool takes.
func object(input string) json.RawMessage {
	switch text := strings.TrimSpace(input); {
	case text == "" || text == "null":
		return json.RawMessage("{}")
	case isObject([]byte(text)):
		return json.RawMessage(text)
	}
	wrapped, _ := json.Marshal(map[string]string{noObject: input}) // a string can always be encoded
	return wrapped
}

const noObject = "not_an_object" // a field that no tool has

// Unread says that an input is the object that stands for one that was none: no tool should be run with it.
func Unread(input json.RawMessage) bool {
	var fields map[string]string
	return json.Unmarshal(input, &fields) == nil && len(fields) == 1 && fields[noObject] != ""
}

func isObject(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}

const maxName = 64 // bytes of a tool's name, OpenAI's limit

// nameUses gives each tool use of an answer an id that the conversation does not have yet, and a name that services take
// back; found reports whether there are any. Ollama and llama.cpp leave ids out or begin at the same number every time.
func nameUses(answer []transcript.Block, before []transcript.Message) (found bool) {
	taken := map[string]bool{"": true}
	for _, m := range before {
		for _, old := range m.Content {
			taken[old.ID] = true
		}
	}
	for i := range answer {
		b := &answer[i]
		if b.Type != transcript.ToolUse {
			continue
		}
		found = true
		for n := len(taken); taken[b.ID]; n++ {
			b.ID = fmt.Sprintf("call_%d", n)
		}
		taken[b.ID] = true
		b.Name = cmp.Or(plaintext.Word(b.Name), "unnamed")
		b.Name = b.Name[:min(len(b.Name), maxName)]
	}
	return found
}

// stopOf is the reason under any name that a service has for it.
func stopOf(name string) string {
	switch name {
	case "length", MaxTokens:
		return MaxTokens
	case "content_filter", Refusal:
		return Refusal
	case "tool_calls", "function_call", toolUse:
		return toolUse
	case fullWindow, Pause:
		return name
	}
	return EndTurn
}

// said reports whether a block holds a text that services take: none takes white space alone.
func said(b transcript.Block) bool {
	return b.Type == transcript.TextBlock && strings.TrimSpace(b.Text) != ""
}
