package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/state/transcript"
)

// exportMarkdown writes a conversation for people. Texts are as they are; a fence that one leaves open is closed behind it.
func (d *Deps) exportMarkdown(t transcript.Transcript, entries []transcript.Entry, thinking bool) error {
	facts := []string{shownTime(t.Timestamp), printable(t.Cwd), printable(service(t.Header))}
	if t.ParentID != "" {
		facts = append(facts, "from "+printable(t.ParentID))
	}
	facts = slices.DeleteFunc(facts, func(fact string) bool { return fact == "" })
	out := d.Out
	if _, err := fmt.Fprintf(out, "# Session %s\n\n%s\n", t.ID, strings.Join(facts, ", ")); err != nil {
		return err
	}
	m := markdown{thinking: thinking, tools: map[string]string{}}
	for _, e := range entries {
		if _, err := io.WriteString(out, m.message(e)); err != nil {
			return err
		}
	}
	return nil
}

type markdown struct {
	thinking bool
	tools    map[string]string // names of tools by the ids of their uses
}

// message is one message with a blank line in front of each part. Results of tools stand below the answer that asked for them,
// without a heading: they are messages of the user by form only.
func (m markdown) message(e transcript.Entry) string {
	var out strings.Builder
	spoken := false
	say := func(text string) {
		if !spoken {
			out.WriteString(heading(e))
		}
		spoken = true
		out.WriteString("\n" + text + "\n")
	}
	for _, b := range e.Message.Content {
		switch b.Type {
		case transcript.TextBlock:
			if text := strings.Trim(b.Text, "\n"); text != "" {
				say(text + unclosed(text))
			}
		case transcript.ThinkingBlock:
			if text := strings.TrimSpace(b.Thinking); m.thinking && text != "" {
				say("> " + strings.ReplaceAll(text, "\n", "\n> "))
			}
		case transcript.ToolUse:
			m.tools[b.ID] = printable(b.Name)
			say("Uses " + printable(b.Name) + ":\n\n" + fenced("json", indented(b.Input)))
		case transcript.ToolResult:
			what := "Result"
			if b.IsError {
				what = "Error"
			}
			out.WriteString("\n" + strings.TrimSuffix(what+" of "+m.tools[b.ToolUseID], " of ") + ":\n\n" + fenced("", b.Content) + "\n")
		}
	}
	return out.String()
}

func heading(e transcript.Entry) string {
	who := "Assistant"
	if e.Message.Role == transcript.User {
		who = "User"
	}
	if at := shownTime(e.At); at != "" {
		who += ", " + at
	}
	return "\n## " + who + "\n"
}

// fenced sets a text off, by a fence that is longer than any in it.
func fenced(language, text string) string {
	longest, run := 2, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return fence + language + "\n" + text + fence
}

// unclosed is the end of a fence that a text leaves open, "" if there is none.
func unclosed(text string) string {
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		bare := strings.TrimLeft(line, " ")
		if len(line)-len(bare) > 3 || bare == "" {
			continue
		}
		mark := bare[:1]
		rest := strings.TrimLeft(bare, mark)
		fence := bare[:len(bare)-len(rest)]
		switch {
		case mark != "`" && mark != "~" || len(fence) < 3:
		case open == "" && (mark == "~" || !strings.Contains(rest, "`")):
			open = fence
		case open != "" && mark == open[:1] && len(fence) >= len(open) && rest == "":
			open = ""
		}
	}
	if open == "" {
		return ""
	}
	return "\n" + open
}

// indented is a tool's input in several lines; what is no JSON stays as it is.
func indented(input json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, input, "", "  ") != nil {
		return string(input)
	}
	return out.String()
}
