package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

func newFork(d *deps) *cobra.Command {
	return group("fork", "Branch the main conversation for one topic",
		newForkStart(d),
		withJSON(d, command(agentAll(), "status", "Show the open fork, one key and value per line",
			inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runForkStatus(ctx, d, h) })), "print one JSON object"),
		command(agentOwn(runlog.SaveContext), "save", "Make the fork the main conversation",
			inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runForkSave(ctx, d, h) })),
		command(agentNever(nested), "report", "Drop the fork, and keep its agent's summary as a pending update",
			inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runForkReport(ctx, d, h) })),
		command(agentOwn(runlog.ExitFork), "exit", "Drop the fork",
			inHome(d, func(ctx context.Context, h app.Home, _ []string) error { return runForkExit(ctx, d, h) })), newForkReply(d),
		// Tick starts it.
		hidden(command(agentNever(nested), "nudge", "Let the agent of an idle fork ask whether to end it",
			inHome(d, func(ctx context.Context, h app.Home, _ []string) error {
				r, err := h.Turns(false).Forks.Nudge(ctx, turn.Options{})
				if r.ID == "" {
					return err
				}
				return (&fireOptions{scheduled: true}).verdict(d, r, err)
			}))))
}

func newForkStart(d *deps) *cobra.Command {
	var model string
	cmd := command(agentOwn(runlog.EnterFork), "start [TOPIC...]", "Open an interactive fork",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return runForkStart(ctx, d, h, strings.Join(args, " "), model)
		}))
	cmd.Flags().StringVar(&model, "model", "", "use this model")
	return cmd
}

func runForkStart(ctx context.Context, d *deps, h app.Home, topic, model string) error {
	if d.inside() {
		return d.answer(d.useTool(ctx, h, runlog.EnterFork, map[string]string{"topic": topic}))
	}
	return d.turn(h, model, func(t turn.Turns, o turn.Options) (runlog.Record, error) {
		record, err := t.Forks.Start(ctx, topic, o)
		if record.ID == "" && errors.Is(err, session.ErrForkOpen) {
			return record, hint(err, "ollim fork status")
		}
		if err != nil || record.ID != "" && record.Outcome != runlog.OK {
			if _, open, _ := h.Sessions.Fork(ctx); open {
				d.line("info", "fork: it is open although its first turn failed: ollim chat continues it, ollim fork exit drops it")
			}
		}
		return record, err
	})
}

// turn runs a turn of the owner's conversation and writes its answer as chat does. A record without an id means that there was no run.
func (d *deps) turn(h app.Home, model string, take func(turn.Turns, turn.Options) (runlog.Record, error)) error {
	outlivePipe()
	v := &voice{d: d, format: "text", stop: func(error) {}, shown: d.answerText(h.Config.Chat)} // the turn continues without a reader
	stop := d.watch("chat")
	r, err := take(h.Turns(d.atShell()), turn.Options{
		Model: model, Owner: d.atShell(), Observe: run.Observer{Event: d.chatEvent(v), Text: v.delta()},
	})
	stop()
	if r.ID == "" {
		return explain(err)
	}
	v.end(h, r, err)
	d.account("chat", "", r)
	if r.Crossed() > 0 {
		d.line("warning", join("chat", fmt.Sprintf("the conversation has %s: /compact, or ollim session compact main INSTRUCTIONS", r.Size())))
	}
	return errors.Join((&fireOptions{}).verdict(d, r, err), v.err)
}

func forkLine(e runlog.Event) string {
	return cmp.Or(map[string]string{
		runlog.ForkOpened:    join("fork", "opened", e.Text),
		runlog.ForkContinued: join("fork", "this turn is in the interactive fork", e.Text),
		runlog.ForkSaved:     "fork: saved; it is the main conversation now",
		runlog.ForkReported:  "fork: ended; a pending update reports it",
		runlog.ForkSilent:    "fork: ended; its agent left no summary, and a pending update says so",
		runlog.ForkDropped:   "fork: ended and dropped",
		runlog.ForkKept:      join("fork", "not saved", e.Text),
	}[e.Tool], e.Text)
}

func runForkStatus(ctx context.Context, d *deps, h app.Home) error {
	f, open, err := h.Sessions.Fork(ctx)
	switch {
	case err != nil:
		return err
	case !open:
		return session.ErrNoFork
	case d.json:
		return d.emit(f)
	}
	savable := "yes"
	if err := h.Sessions.Savable(f); err != nil {
		savable = "no: " + err.Error()
	}
	last := "" // the fork's time, while it has no turn, is that of its start
	if f.Turns > 0 {
		last = shownTime(inZone(f.Last, h))
	}
	return d.facts([][]string{
		{"topic", f.Topic}, {"reply to", f.Quote}, {"session", f.Session}, {"parent", f.Parent}, {"run", f.Run},
		{"begun", shownTime(inZone(f.Begun, h))}, {"last turn", last}, {"turns", strconv.Itoa(f.Turns)},
		{"can be saved", savable},
	}...)
}

func runForkSave(ctx context.Context, d *deps, h app.Home) error {
	if d.inside() {
		return d.answer(d.useTool(ctx, h, runlog.SaveContext, struct{}{}))
	}
	f, err := h.Turns(d.atShell()).Forks.Save(ctx)
	if errors.Is(err, session.ErrMainMoved) || errors.Is(err, session.ErrResumed) {
		return hint(err, "ollim fork report")
	}
	if err == nil {
		d.note("the fork's session %s is the main session now", f.Session)
	}
	return err
}

func runForkReport(ctx context.Context, d *deps, h app.Home) error {
	return d.turn(h, "", func(t turn.Turns, o turn.Options) (runlog.Record, error) {
		record, err := t.Forks.Report(ctx, o)
		if errors.Is(err, session.ErrNoTurn) {
			err = hint(err, "ollim fork exit")
		}
		return record, err
	})
}

func runForkExit(ctx context.Context, d *deps, h app.Home) error {
	if d.inside() {
		return d.answer(d.useTool(ctx, h, runlog.ExitFork, struct{}{}))
	}
	_, err := h.Turns(d.atShell()).Forks.Exit(ctx)
	if err == nil {
		d.note("the fork is dropped; the main conversation goes on where it was left")
	}
	return err
}

func newForkReply(d *deps) *cobra.Command {
	var model string
	cmd := command(agentNever(nested), "reply MESSAGE TEXT...", "Reply to a message that an agent sent",
		inHome(d, func(ctx context.Context, h app.Home, args []string) error {
			text, err := wordsOrInput(d, args[1:])
			if err != nil {
				return err
			}
			if strings.TrimSpace(text) == "" {
				return usage("the reply is empty")
			}
			return runForkReply(ctx, d, h, args[0], text, model)
		}))
	cmd.Flags().StringVar(&model, "model", "", "use this model")
	return cmd
}

func runForkReply(ctx context.Context, d *deps, h app.Home, id, text, model string) error {
	asked, err := h.Turns(false).Replies.Asked(ctx, id)
	if err != nil {
		return err
	}
	if asked != "" {
		if _, err := h.Firer().Answers.Give(ctx, asked, text); err != nil {
			return err
		}
		return d.startToGoOn(h, asked)
	}
	return d.turn(h, model, func(t turn.Turns, o turn.Options) (runlog.Record, error) {
		record, err := t.Replies.Reply(ctx, id, turn.Message{Text: text}, o)
		if as[*plaintext.Unknown](err) {
			err = hint(err, "the id is RUN.N for message N of a run: ollim run list")
		}
		return record, err
	})
}

// sayCarried tells the owner that a turn continues a session of another engine.
func (d *deps) sayCarried(e runlog.Event) {
	if !d.quiet {
		d.line("info", prompt.CarriedOver(e.Tool, e.Session))
	}
}

func (d *deps) chatEvent(v *voice) func(runlog.Event) {
	return func(e runlog.Event) {
		switch e.Type {
		case runlog.UpdatesPopped:
			_, _ = fmt.Fprintln(d.talk(), prompt.CatchingUp)
		case runlog.CarriedOver:
			d.sayCarried(e)
		case runlog.Fork:
			if !d.quiet {
				d.line("info", forkLine(e))
			}
		}
		v.hear(e)
	}
}
