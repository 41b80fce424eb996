package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Errors of a run that cannot begin.
var (
	// ErrNoEngine means that neither the job nor the configuration names an engine.
	ErrNoEngine = errors.New("no engine is configured")
	// ErrMovedClock means that an engine other than a script was asked to run at another time.
	ErrMovedClock = errors.New("only the script engine can run at another time")
)

// begin takes the run's lock, writes the record, and notes it in the job's lock.
func (r *Runner) begin(ctx context.Context, s Spec) (*work, error) {
	s = r.complete(s)
	record, err := r.record(ctx, s)
	if err != nil {
		return nil, err
	}
	w := &work{r: r, spec: s, held: s.Identity.Held}
	if w.held == nil {
		w.held, err = r.Runs.Hold(record.ID)
	}
	if err != nil {
		return nil, err
	}
	if err := w.open(ctx, record); err != nil {
		w.held.Leave()
		return nil, err
	}
	w.equip()
	return w, nil
}

func (w *work) open(ctx context.Context, record runlog.Record) (err error) {
	if guard := w.spec.Identity.Guard; guard != nil { // before the record, so that the next fire finds every record that was begun
		w.note = guard.LastNote()
		if err := guard.Note(record.ID + "\n"); err != nil {
			return err
		}
	}
	if w.spec.Identity.Again {
		w.run, err = w.r.Runs.Reopen(ctx, record.ID, func(r *runlog.Record) { *r = record })
	} else {
		w.run, err = w.r.Runs.Open(record)
	}
	if err == nil {
		w.run.Held = w.held
	}
	return err
}

// equip gives the run its tools, its seal, which is not in force yet, and its account.
func (w *work) equip() {
	w.tools = w.r.ToolsOf(w.run, w.spec.Sender)
	w.box = &sandbox{r: w.r, spec: w.spec, run: w.run, tools: w.tools}
	w.money = &account{run: w.run, spec: w.spec, spend: w.r.Spend, runs: w.r.Runs, warn: w.r.Warn}
}

// release releases the locks of a run that has ended: the run's own lock last, because a process that waits for it may fire the job again.
func (w *work) release() {
	w.spec.Identity.Guard.Release()
	w.held.Leave()
}

// complete fills in what a Spec may leave out.
func (r *Runner) complete(s Spec) Spec {
	s.Engine.Name = cmp.Or(s.Engine.Name, r.Settings.Engine)
	if s.Engine.Fallback == nil {
		s.Engine.Fallback = r.Settings.Fallback
	}
	if s.Sender == nil {
		s.Sender = r.Outbox
	}
	return s
}

// record returns the record that a run begins with, which is not on disk yet.
func (r *Runner) record(ctx context.Context, s Spec) (record runlog.Record, err error) {
	name := s.Engine.Name
	switch {
	case name == "" && !s.Plain && s.Origin.Permit() == nil:
		return record, ErrNoEngine
	case s.Engine.Moved && !IsScript(name):
		return record, ErrMovedClock
	}
	id := s.Identity
	id.Name = cmp.Or(id.Name, id.Job)
	if id.Run == "" {
		if id.Run, err = runlog.NewID(r.Disk.Now(), r.Random); err != nil {
			return record, err
		}
	}
	history, err := r.conversations().Open(ctx, s.Conversation, name)
	if err != nil {
		return record, err
	}
	traits := s.Conversation.Traits()
	deadline := r.Disk.Now().Add(s.Limits.Time).In(r.Zone)
	record = runlog.Record{
		ID: id.Run, Subject: id.Subject, Process: r.Host.Process(),
		Mode: traits.Mode, Foreground: traits.Foreground, Shared: traits.Shared, Persistent: traits.Persistent, Key: s.Conversation.Key(),
		Engine: name, Model: r.Settings.modelOf(s.Engine), Typed: id.Typed, Started: r.Disk.Now(), Deadline: &deadline,
		AllowPing: s.Policy.AllowPing, Update: string(s.Policy.Update), Busy: r.Busy(), Owner: s.Policy.Owner,
		Tools: s.Policy.Tools, Root: s.Policy.Root, Skills: s.Input.Task.Skills,
		Previous: r.past().previous(s.Conversation.Key(), id.Run), SessionBefore: history.Session, Parent: history.Parent, Private: history.Discard,
	}
	if s.Policy.Mode != policy.DontAsk {
		record.Permissions, record.MayAsk = string(s.Policy.Mode), s.Policy.Mode != "" && s.Observe.Permit != nil
	}
	if slices.Contains(id.Typed, runlog.TypedThinking) {
		record.Thinking = s.Engine.Thinking
	}
	for _, root := range s.Policy.Dirs {
		record.Dirs = append(record.Dirs, DirOf(root))
	}
	if s.Policy.Seal.On {
		record.Seal = job.SealOn
	}
	if s.Policy.Seal.Offline {
		record.Network = job.NetworkNone
	}
	if s.Plain {
		record.Engine, record.Model, record.Tools = "", "", nil
	}
	if !id.Scheduled.IsZero() {
		at := id.Scheduled.In(r.Zone)
		record.Scheduled = &at
	}
	return record, s.Origin.Begin(&record)
}

// modelOf returns the model that a run requests, or else the default of its engine; "" if it has none.
func (s Settings) modelOf(c Choice) string {
	if c.Model == "" && s.Model != nil {
		return s.Model(c.Name)
	}
	return c.Model
}

// DirOf returns a directory as records name it.
func DirOf(root policy.Root) string {
	if root.Writable {
		return "rw:" + root.Dir
	}
	return root.Dir
}

// IsScript reports whether an engine is a script. Only a script can run at another time, and it costs nothing.
func IsScript(engine string) bool { return strings.HasPrefix(engine, "script:") }
