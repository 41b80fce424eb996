package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/state/transcript"
)

type exportOptions struct {
	format            string
	lineage, thinking bool
}

func newSessionExport(d *deps) *cobra.Command {
	var o exportOptions
	cmd := command(agentNever(refused), "export SESSION", "Print a conversation as Markdown or JSON",
		func(_ *cobra.Command, args []string) error { return runSessionExport(d, args[0], o) })
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "markdown", "markdown, or json: the header, then one message per line")
	f.BoolVar(&o.lineage, "lineage", false, "include the sessions that it came from, oldest first, each in full")
	f.BoolVar(&o.thinking, "thinking", false, "markdown: include the model's thinking")
	return withJSON(d, cmd, "same as --format json")
}

func runSessionExport(d *deps, name string, o exportOptions) error {
	if d.json {
		o.format = "json"
	}
	if o.format != "markdown" && o.format != "json" {
		return usage("--format %q: want markdown or json", o.format)
	}
	h, err := d.AnyHome()
	if err != nil {
		return err
	}
	c, err := h.Conversation(name)
	if err == nil {
		err = readable(c)
	}
	if err != nil {
		return about(name, err)
	}
	line := []transcript.Transcript{c.File}
	if o.lineage {
		if line, err = h.Transcripts().Lineage(c.File); err != nil {
			return err
		}
	}
	d.pager.Page()
	for i, t := range slices.Backward(line) {
		entries, err := d.load(h, t)
		if err != nil {
			return err
		}
		t.Timestamp = inZone(t.Timestamp, h)
		for i := range entries {
			entries[i].At = inZone(entries[i].At, h)
		}
		if o.format == "json" {
			err = d.emit(struct {
				Type string `json:"type"`
				transcript.Header
			}{"session", t.Header})
			for _, entry := range entries {
				err = cmp.Or(err, d.emit(entry))
			}
		} else {
			err = d.exportMarkdown(t, entries, o.thinking)
		}
		if i > 0 && o.format != "json" && err == nil {
			_, err = io.WriteString(d.Out, "\n")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *deps) load(h app.Home, t transcript.Transcript) ([]transcript.Entry, error) {
	bad := 0
	entries, err := h.Load(t, &bad)
	d.warnOmitted(t.Path, bad, "line")
	return entries, err
}

// exportMarkdown writes a conversation for people. Texts are unchanged; a code fence that a text leaves open is closed after it.
func (d *deps) exportMarkdown(t transcript.Transcript, entries []transcript.Entry, thinking bool) error {
	facts := []string{shownTime(t.Timestamp), printable(t.Cwd), printable(service(t.Header))}
	if t.ParentID != "" {
		facts = append(facts, "from "+printable(t.ParentID))
	}
	facts = slices.DeleteFunc(facts, func(fact string) bool { return fact == "" })
	_, err := fmt.Fprintf(d.Out, "# Session %s\n\n%s\n", t.ID, strings.Join(facts, ", "))
	m := markdown{thinking: thinking, tools: map[string]string{}}
	for _, e := range entries {
		if err != nil {
			return err
		}
		_, err = io.WriteString(d.Out, m.message(e))
	}
	return err
}

type markdown struct {
	thinking bool
	tools    map[string]string // names of tools by the ids of their uses
}

// message returns one message with a blank line before each part. Results of tools stand below the answer that asked for them, without a
// heading: they are messages of the user by form only.
func (m markdown) message(e transcript.Entry) string {
	var out strings.Builder
	spoken := false
	say := func(text string) {
		if !spoken {
			who := "Assistant"
			if e.Message.Role == transcript.User {
				who = "User"
			}
			if at := shownTime(e.At); at != "" {
				who += ", " + at
			}
			out.WriteString("\n## " + who + "\n")
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
		case transcript.ImageBlock, transcript.DocumentBlock:
			if b.Source != nil {
				say(printable(b.Source.Label()))
			}
		case transcript.ThinkingBlock:
			if text := strings.TrimSpace(b.Thinking); m.thinking && text != "" {
				say("> " + strings.ReplaceAll(text, "\n", "\n> "))
			}
		case transcript.ToolUse:
			m.tools[b.ID] = printable(b.Name)
			var input bytes.Buffer
			if json.Indent(&input, b.Input, "", "  ") != nil { // invalid JSON stays as it is
				input = *bytes.NewBuffer(b.Input)
			}
			say("Uses " + printable(b.Name) + ":\n\n" + fenced("json", input.String()))
		case transcript.ToolResult:
			what := "Result"
			if b.IsError {
				what = "Error"
			}
			out.WriteString("\n" + strings.TrimSuffix(what+" of "+m.tools[b.ToolUseID], " of ") + ":\n\n" + fenced("", b.Content) + "\n")
			if b.Source != nil {
				out.WriteString("\n" + printable(b.Source.Label()) + "\n")
			}
		}
	}
	return out.String()
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

// unclosed returns the end of a fence that a text leaves open; "" if there is none.
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
