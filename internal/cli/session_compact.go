package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

func newSessionCompact(d *deps) *cobra.Command {
	var engine string
	cmd := command(agentOwn("compact_session"), "compact SESSION INSTRUCTIONS...", "Replace a session by a summary that follows your instructions",
		func(cmd *cobra.Command, args []string) error {
			return runSessionCompact(cmd.Context(), d, args[0], strings.Join(args[1:], " "), engine)
		})
	cmd.Flags().StringVar(&engine, "engine", "", "the engine of the session (default: the routine's, else the configured one)")
	return cmd
}

func runSessionCompact(ctx context.Context, d *deps, name, instructions, engine string) error {
	if strings.TrimSpace(instructions) == "" {
		return usage("the instructions are empty: say what to keep")
	}
	h, err := d.Home()
	if err != nil {
		return err
	}
	if d.inside() {
		n, found, err := h.SessionName(name)
		if err != nil {
			return err
		}
		if !found {
			return foreignSession()
		}
		return d.wishInRun(ctx, h, n, instructions)
	}
	c, err := h.Conversation(name)
	if err != nil {
		return about(name, err)
	}
	stop := d.watch("session compact")
	r, err := d.compactSession(ctx, h, c, instructions, engine)
	stop()
	if r.ID == "" {
		return explain(err)
	}
	if err := (&fireOptions{}).verdict(d, r, err); err != nil {
		return err
	}
	facts := d.compactionFacts(h, c, r)
	if isTerminal(d.Stderr) {
		facts += ", " + costOf(r)
	}
	d.line("info", join("session compact", facts))
	return d.answer(r.SessionAfter, nil)
}

func (d *deps) compactionFacts(h app.Home, c app.Conversation, r runlog.Record) string {
	facts := "compacted"
	if c.File.Path != "" {
		if entries, err := d.load(h, c.File); err == nil {
			turns, since := transcript.Turns(entries)
			facts = "compacted " + plaintext.Count(turns, "turn")
			if !since.IsZero() {
				facts += ", the first " + prompt.Ago(h.Disk.Now().Sub(since))
			}
		}
	}
	return fmt.Sprintf("%s: %d tokens before, %d after", facts, r.ContextBefore, r.Context)
}

func (d *deps) compactSession(ctx context.Context, h app.Home, c app.Conversation, instructions, name string) (runlog.Record, error) {
	if c.Name.Text == "" {
		if err := heldBy(c, "the native engine", engine.Native); err != nil {
			return runlog.Record{}, err
		}
		known, err := openSession(h.Transcripts(), c.File.Path)
		if err != nil {
			return runlog.Record{}, err
		}
		o := turn.Options{Engine: cmp.Or(name, engine.Native), Model: known.Model, Owner: d.atShell(), Observe: run.Observer{Event: d.follow}}
		return h.Turns(d.atShell()).CompactTranscript(ctx, known, instructions, o)
	}
	o := turn.Options{Engine: name, Owner: d.atShell(), Observe: run.Observer{Event: d.follow}}
	if c.Name.Routine != "" {
		files, err := h.Jobs.Load()
		if err != nil {
			return runlog.Record{}, err
		}
		if j, err := files.Find(c.Name.Routine); err == nil { // the cache of its fires is that of its model
			o.Engine, o.Model = cmp.Or(name, j.Engine), j.Model
		}
	}
	return h.Turns(d.atShell()).CompactSession(ctx, c.Name.Routine, instructions, o)
}

func foreignSession() error {
	return fmt.Errorf("%w: a run can compact its own session only", app.ErrNotAllowed)
}

// wishInRun uses the compact_session tool for a command typed in a run.
func (d *deps) wishInRun(ctx context.Context, h app.Home, n app.SessionName, instructions string) error {
	box, err := h.Tools()
	if err != nil {
		return err
	}
	if n.Routine != box.Run.Job {
		return foreignSession()
	}
	_, err = d.useTool(ctx, h, "compact_session", map[string]string{"instructions": instructions})
	return err
}
