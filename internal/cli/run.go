package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
)

func newRun(d *deps) *cobra.Command {
	return group("run", "Show run records, and build their requests again",
		newRunList(d), newRunShow(d), newRunLog(d), newRunReplay(d))
}

func newRunList(d *deps) *cobra.Command {
	var n int
	cmd := command(agentOwn(""), "list [JOB]", "List runs, newest first: id, start, job, outcome, duration, cost, error or question",
		inAnyHome(d, func(_ context.Context, h app.Home, args []string) error {
			return runRunList(d, h, strings.Join(args, ""), n)
		}))
	cmd.Flags().IntVarP(&n, "number", "n", 20, "maximum number of runs; 0 means all")
	return withJSON(d, cmd, jsonLines+", as in run.json")
}

func runRunList(d *deps, h app.Home, job string, n int) error {
	job = strings.TrimSuffix(job, ".md")
	if n < 0 {
		return usage("-n %d: want 0 or more", n)
	}
	t, shown := d.table("ID STARTED JOB OUTCOME TIME COST REASON"), 0
	for r, err := range d.runs(h).List() {
		if err != nil && r.ID == "" {
			return err
		}
		if err != nil {
			d.warn(err.Error())
			continue
		}
		if job != "" && job != r.Job && job != r.Name {
			continue
		}
		if r = h.Runs.CutOff(r); !d.json {
			took := ""
			if r.Finished != nil {
				took = r.Finished.Sub(r.Started).Round(time.Millisecond).String()
			}
			end, reason := t.mark(state(outcome(r)), marksOf(r), cmp.Or(r.Error, r.Question))
			t.row(r.ID, past(r.Started), brief(r.Name), end, took, fmt.Sprintf("$%.2f", r.Cost), prose(reason))
		} else if err := d.emit(r); err != nil {
			return err
		}
		if shown++; shown == n {
			break
		}
	}
	t.end()
	if shown == 0 && job != "" {
		files, err := h.Jobs.Load()
		if err != nil {
			return err
		}
		if _, err := files.Find(job); err != nil {
			return explain(err)
		}
	}
	return nil
}

// marksOf says how many uses of tools were denied and failed, and which model was asked instead, whatever the outcome of the run; "" for
// none.
func marksOf(r runlog.Record) string {
	var marks []string
	if r.ToolDenied > 0 {
		marks = append(marks, fmt.Sprintf("%d denied", r.ToolDenied))
	}
	if r.ToolFailed > 0 {
		marks = append(marks, plaintext.Count(r.ToolFailed, "failed tool"))
	}
	if r.Fallback != "" {
		marks = append(marks, "fallback "+r.ModelUsed)
	}
	return strings.Join(marks, ", ")
}

func newRunLog(d *deps) *cobra.Command {
	var follow bool
	cmd := command(agentOwn(""), "log RUN", "Print what a run did: prompt, tool calls with inputs and results, text, errors",
		inAnyHome(d, func(ctx context.Context, h app.Home, args []string) error {
			return runRunLog(ctx, d, h, args[0], follow)
		}))
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "follow the log until the run ends")
	return withJSON(d, cmd, "print the events as they are recorded, one JSON object per line")
}

// findRun finds the run that name means. A run whose id was given to the sender of a webhook's event may not have begun.
func (d *deps) findRun(h app.Home, name string) (runlog.Record, error) {
	r, err := d.runs(h).Find(name)
	if unknown, is := errors.AsType[*plaintext.Unknown](err); is && !d.own {
		if len(unknown.Near) == 0 {
			err = hint(err, "ollim run list")
		}
		if e, waits := h.Inbox.Find(name); waits == nil {
			return r, &withStatus{fmt.Errorf("the event waits in the inbox of webhook %s since %s", e.Hook, clock(e.Arrived.In(h.Config.Zone))), statusTempFail}
		}
	}
	return r, err
}

// followEvery is how often a followed log is read again.
const followEvery = 200 * time.Millisecond

func runRunLog(ctx context.Context, d *deps, h app.Home, name string, follow bool) error {
	r, err := d.findRun(h, name)
	if err != nil {
		return err
	}
	if !follow {
		d.pager.Page()
	}
	if !d.json {
		if err := d.printPrompt(h, r); err != nil {
			return err
		}
	}
	seen := 0
	for !follow || ctx.Err() == nil { // the first ctx.Err begins to handle signals
		ended := r.Done() || h.Runs.CutOff(r).Outcome != "" // asked before reading: what came after is read in the next round
		if seen, err = d.printEvents(h, r.ID, seen); err != nil {
			return err
		}
		if !follow || ended {
			if d.json {
				return nil
			}
			r = h.Runs.CutOff(r)
			end := ""
			if r.Sealed != nil {
				for _, why := range r.Sealed.Refused {
					end += plaintext.Lines("sealed "+why) + "\n"
				}
			}
			return d.answer(d.flow(end+printable(join(outcome(r), r.Error)), blockIndent), nil)
		}
		if err := d.flush(); err != nil {
			return err
		}
		if err := d.Sleep(ctx, followEvery); err != nil {
			return &reported{statusOf(err)} // the reader has ended the command: no message
		}
		if r, err = h.Runs.Load(r.ID); err != nil {
			return err
		}
	}
	return &reported{statusOf(ctx.Err())}
}

func (d *deps) printPrompt(h app.Home, r runlog.Record) error {
	err := d.answer(d.flow(fmt.Sprintf("run %s: %s, %s, %s", r.ID, r.Name, r.Mode, r.Engine), blockIndent), nil)
	if err != nil {
		return err
	}
	text, err := store.Read(h.Dir.Run(r.ID, "prompt.txt"))
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.Private:
		return d.answer(d.flow("prompt and answer "+runlog.NotKept, blockIndent), nil)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return d.answer(d.flow(block("prompt", string(text)), blockIndent), err)
}

func (d *deps) printEvents(h app.Home, id string, seen int) (int, error) {
	bad, n := 0, 0
	for e, err := range h.Runs.Events(id, &bad) {
		if err != nil {
			return n, err
		}
		n++
		if n <= seen {
			continue
		}
		if d.json {
			err = d.emit(e)
		} else {
			err = d.answer(d.flow(e.At.Format("15:04:05")+" "+plaintext.Lines(eventText(e)), blockIndent), nil)
		}
		if err != nil {
			return n, err
		}
	}
	if seen == 0 {
		d.warnOmitted("run "+id, bad, "event")
	}
	return n, nil
}

func outcome(r runlog.Record) string { return cmp.Or(string(r.Outcome), "running") }

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
		text := fmt.Sprintf("usage in=%d out=%d cache_read=%d cache_write=%d cost=$%.4f",
			e.Usage.In, e.Usage.Out, e.Usage.CacheRead, e.Usage.CacheWrite, e.Cost)
		if e.ByTable > 0 {
			text += fmt.Sprintf(" (by the table of models $%.4f)", e.ByTable)
		}
		return text
	case runlog.Verdict:
		if e.IsError {
			return "verdict denied " + e.Tool + ": " + plaintext.Lines(e.Text)
		}
		return "verdict allowed " + e.Tool
	case runlog.Verified:
		if !e.IsError {
			return "verify " + e.Tool + " ok"
		}
		return block("verify "+e.Tool+" failed", e.Text)
	case runlog.FellBack:
		return "fallback " + fellBack(e)
	case runlog.ServerFailed:
		return "server " + e.Tool + " could not be used: " + plaintext.Lines(e.Text)
	case runlog.Session:
		return block("session "+e.Session, e.Text)
	case runlog.Compacted:
		return block(fmt.Sprintf("compacted %s -> %s, %d -> %d tokens", e.Parent, e.Session, e.Before, e.After), e.Text)
	case runlog.Message:
		return "message " + e.Tool
	case runlog.Delivered:
		return fmt.Sprintf("delivered %s %s", e.Tool, e.Text)
	case runlog.CarriedOver:
		return fmt.Sprintf("carried over from session %s of %s", e.Session, e.Tool)
	case runlog.UpdatesPopped:
		return fmt.Sprintf("updates %d popped", e.Count)
	}
	return block(string(e.Type), e.Text)
}

// fellBack says which model a turn goes on with, and why.
func fellBack(e runlog.Event) string {
	return e.Model + " is asked instead: " + plaintext.Lines(e.Text)
}

// blockIndent is by how much text is indented below its label.
const blockIndent = 4

// block returns a text of one line after its label, and a longer text below it.
func block(head, text string) string {
	text = plaintext.Lines(strings.TrimRight(text, "\n"))
	switch {
	case text == "":
		return head
	case strings.Contains(text, "\n"):
		margin := "\n" + strings.Repeat(" ", blockIndent)
		return head + margin + strings.ReplaceAll(text, "\n", margin)
	}
	return head + " " + text
}
