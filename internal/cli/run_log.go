package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
)

func (d *Deps) printPrompt(h app.Home, r runlog.Record) error {
	_, err := fmt.Fprintf(d.Out, "run %s: %s, %s, %s\n", r.ID, r.Name, r.Mode, r.Engine)
	if err != nil {
		return err
	}
	text, err := store.Read(h.Dir.Run(r.ID, "prompt.txt"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, "%s\n", block("prompt", string(text)))
	return err
}

// printEvents writes the events from number seen on and returns how many there are now.
func (d *Deps) printEvents(h app.Home, id string, seen int, asJSON bool) (int, error) {
	bad, n := 0, 0
	for e, err := range h.Runs().Events(id, &bad) {
		if err != nil {
			return n, err
		}
		n++
		if n <= seen {
			continue
		}
		if asJSON {
			err = d.emit(e)
		} else {
			_, err = fmt.Fprintf(d.Out, "%s %s\n", e.At.Format("15:04:05"), plaintext.Lines(eventText(e)))
		}
		if err != nil {
			return n, err
		}
	}
	if bad > 0 && seen == 0 {
		d.warn(fmt.Sprintf("run %s: %d events cannot be read and are omitted", id, bad))
	}
	return n, nil
}

func (d *Deps) printEnd(r runlog.Record, asJSON bool) error {
	if asJSON {
		return nil
	}
	outcome := string(r.Outcome)
	if outcome == "" {
		outcome = "running"
	}
	_, err := fmt.Fprintf(d.Out, "%s\n", printable(join(outcome, r.Error)))
	return err
}

// eventText is an event in one paragraph, its first word the type.
func eventText(e runlog.Event) string {
	switch e.Type {
	case runlog.ToolUse:
		return fmt.Sprintf("tool_use %s %s", e.Tool, plaintext.Lines(string(e.Input)))
	case runlog.ToolResult:
		if e.IsError {
			return block("tool_result "+e.Tool+" (error)", e.Text)
		}
		return block("tool_result "+e.Tool, e.Text)
	case runlog.Request:
		if e.Reported > 0 {
			return fmt.Sprintf("request most=$%.4f, before it cost=$%.4f", e.Most, e.Reported)
		}
		return fmt.Sprintf("request most=$%.4f", e.Most)
	case runlog.UsageEvent:
		if e.Usage == nil && e.Cost > 0 {
			return fmt.Sprintf("usage unknown, assumed cost=$%.4f", e.Cost)
		}
		if e.Usage == nil {
			return "usage none"
		}
		return fmt.Sprintf("usage in=%d out=%d cache_read=%d cache_write=%d cost=$%.4f",
			e.Usage.In, e.Usage.Out, e.Usage.CacheRead, e.Usage.CacheWrite, e.Cost)
	case runlog.Verdict:
		if e.IsError {
			return "verdict denied " + e.Tool + ": " + plaintext.Lines(e.Text)
		}
		return "verdict allowed " + e.Tool
	case runlog.Session:
		return block("session "+e.Session, e.Text)
	case runlog.Compacted:
		return block(fmt.Sprintf("compacted %s -> %s, %d -> %d tokens", e.Parent, e.Session, e.Before, e.After), e.Text)
	case runlog.Message:
		return "message " + e.Tool
	case runlog.Delivered:
		return fmt.Sprintf("delivered %s %s", e.Tool, e.Text)
	case runlog.UpdatesPopped:
		return fmt.Sprintf("updates %d popped", e.Count)
	}
	return block(string(e.Type), e.Text)
}

// block puts a text of one line behind its head, and a longer one below it.
func block(head, text string) string {
	text = plaintext.Lines(strings.TrimRight(text, "\n"))
	switch {
	case text == "":
		return head
	case strings.Contains(text, "\n"):
		return head + "\n    " + strings.ReplaceAll(text, "\n", "\n    ")
	}
	return head + " " + text
}
