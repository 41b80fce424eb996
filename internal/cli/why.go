package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/app/trace"
)

func newWhy(d *deps) *cobra.Command {
	cmd := command(agentOwn(""), "why RUN|MESSAGE|UPDATE|TEXT...", "Show where something that you were told comes from: message, run, sources",
		inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error { return runWhy(ctx, d, h, args) }))
	return withJSON(d, cmd, "print each step as one JSON object per line")
}

func runWhy(ctx context.Context, d *deps, h app.Home, args []string) error {
	if strings.TrimSpace(strings.Join(args, "")) == "" {
		return usage("empty text")
	}
	t := trace.Tracer{Home: h, Runs: d.runs(h), Own: d.own}
	steps, err := t.Trace(ctx, args)
	if err != nil {
		return err
	}
	if steps[0].Step == trace.Near {
		d.warn("no message or update has these words; these are the nearest runs")
	}
	d.pager.Page()
	for _, s := range steps {
		if d.json {
			err = d.emit(s)
		} else {
			err = d.step(s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step prints a step: a line that says what it is, and below it the text, its place and the command that shows it.
func (d *deps) step(s trace.Step) error {
	lines := []string{heading(s)}
	for _, detail := range []string{s.Text, placeOf(s), s.Command} {
		if detail != "" {
			lines = append(lines, strings.Repeat(" ", blockIndent)+detail)
		}
	}
	for i, line := range lines {
		line = strings.TrimRight(printable(line), " ")
		if i == 0 || i == 1 && s.Text != "" { // a path and a command stay in one piece, so that they can be copied
			line = d.flow(line, blockIndent)
		}
		if err := d.answer(line, nil); err != nil {
			return err
		}
	}
	return nil
}

// heading says what a step is.
func heading(s trace.Step) string {
	parts := func(all ...string) string {
		var said []string
		for _, part := range all {
			if part != "" {
				said = append(said, part)
			}
		}
		return strings.Join(said, ", ")
	}
	at, name := "", s.Name
	if !s.At.IsZero() {
		at = clock(s.At)
	}
	switch s.Step {
	case trace.Message:
		return parts(strings.TrimSpace(s.Kind+" "+s.ID), at, s.Name, s.Why)
	case trace.Update:
		return parts(strings.TrimSpace("update "+s.ID), at, s.Why)
	case trace.Slot, trace.Run:
		what := strings.TrimSpace(s.Step + " " + s.Run)
		if s.Slot != nil {
			name += " of " + clock(*s.Slot)
		} else {
			name += " at " + at
		}
		return parts(what, strings.TrimSpace(name), s.Outcome) + note(s.Why)
	case trace.Unknown:
		return "no source" + note(s.Why)
	case trace.Near:
		return parts(s.Kind, "run "+s.Run, s.Name, at)
	}
	what := s.Kind
	if s.Tool != "" {
		what = strings.TrimSpace(s.Tool + " " + s.Input)
	}
	return fmt.Sprintf("%s, %d of %d words", what, len(s.Words), s.Of)
}

func note(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// placeOf is the file of a step, with the line.
func placeOf(s trace.Step) string {
	if s.Line == 0 {
		return s.File
	}
	return s.File + ":" + strconv.Itoa(s.Line)
}
