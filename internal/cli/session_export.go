package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/engine/claudecode"
	"github.com/ollim/ollim/internal/state/transcript"
)

type exportOptions struct {
	format   string
	json     bool
	lineage  bool
	thinking bool
}

func (o *exportOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.format, "format", "markdown", "markdown, or json: the header, then one message per line")
	f.BoolVar(&o.json, "json", false, "same as --format json")
	f.BoolVar(&o.lineage, "lineage", false, "include the sessions that it came from, oldest first, each in full")
	f.BoolVar(&o.thinking, "thinking", false, "markdown: include the model's thinking")
}

func newSessionExport(d *Deps) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Annotations: agentNever(refused),
		Use:         "export SESSION",
		Short:       "Print a conversation as Markdown or JSON",
		Long: "Export prints the whole conversation, including tool calls and their results. JSON has the form of a " +
			"transcript, without unreadable lines. A branch begins with the messages of its parent, and a compacted session " +
			"with a summary and its parent's last messages, so --lineage prints these twice.",
		Example: "  ollim session export main | less\n  ollim session export --json main | jq -r 'select(.message.role==\"user\").message.content'",
		Args:    checked(cobra.ExactArgs(1)),
		RunE:    works(func(_ *cobra.Command, args []string) error { return runSessionExport(d, args[0], o) }),
	}
	o.flags(cmd.Flags())
	return cmd
}

func runSessionExport(d *Deps, name string, o exportOptions) error {
	if o.json {
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
		if line, err = transcript.Lineage(h.Dir.Sessions(), c.File); err != nil {
			return err
		}
	}
	for i, t := range slices.Backward(line) {
		entries, err := d.load(t)
		if err != nil {
			return err
		}
		t.Timestamp = inZone(t.Timestamp, h)
		for i := range entries {
			entries[i].At = inZone(entries[i].At, h)
		}
		if o.format == "json" {
			err = d.exportJSON(t, entries)
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

// load reads a conversation, and warns of what cannot be read.
func (d *Deps) load(t transcript.Transcript) ([]transcript.Entry, error) {
	bad := 0
	load := t.Load
	if c := (claudecode.Archive{}); c.Holds(t) {
		load = func(bad *int) ([]transcript.Entry, error) { return c.Load(t, false, bad) }
	}
	entries, err := load(&bad)
	if bad > 0 {
		d.warn(fmt.Sprintf("%s: %d lines cannot be read and are omitted", t.Path, bad))
	}
	return entries, err
}

func (d *Deps) exportJSON(t transcript.Transcript, entries []transcript.Entry) error {
	e := json.NewEncoder(d.Out)
	e.SetEscapeHTML(false)
	header := struct {
		Type string `json:"type"`
		transcript.Header
	}{"session", t.Header}
	if err := e.Encode(header); err != nil {
		return err
	}
	for _, entry := range entries {
		if err := e.Encode(entry); err != nil {
			return err
		}
	}
	return nil
}
