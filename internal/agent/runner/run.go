// Package runner is the story of the product: a job is found and locked, its run is put on record, the agent is told what
// it must know, works, is held to its duty to report, compacts if it asked to, and its owner hears what matters.
// A fire is safe to call at any moment, by several schedulers at once.
package runner

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/budget"
	"github.com/ollim/ollim/internal/state/changed"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/slot"
	"github.com/ollim/ollim/internal/state/spend"
	"github.com/ollim/ollim/internal/state/update"
)

// Firer fires the jobs of one data directory.
type Firer struct {
	Home      paths.Dir
	Disk      store.Disk
	Zone      *time.Location
	Jobs      job.Library
	Runs      runlog.Book
	Sessions  session.Book
	Updates   update.Box
	Told      notice.Book
	Spend     spend.Book
	Budget    budget.Book
	Approvals approval.Book
	Changes   changed.Book
	Slots     slot.Book
	Post      outbox.Post
	Names     config.Names
	SetNames  func(user, bot string) error
	Secret    []string // paths outside the data directory that no agent may reach
	UserHome  string   // the owner's home, for ~/ in dirs
	Env       []string // of gates and of commands in skills
	Random    io.Reader
	Process   Process
	Engine    string                                     // the configured one; "" when none is
	Engines   func(name string) (engine.Engine, error)   // makes an engine of a name
	Watch     func(runlog.Event)                         // sees every event as it happens; may be nil
	Sleep     func(context.Context, time.Duration) error // returns early, with its error, when the context ends
}

// Process is who fires, for the record.
type Process struct {
	process.ID
	Group int
}

// Options are what one fire may do differently from its job's file.
type Options struct {
	Engine string        // "" is the job's
	Model  string        // "" is the job's
	Input  string        // joins the prompt as data
	Wait   time.Duration // for a run of the same job to end; 0 skips at once
	Moved  bool          // the clock is not the real one
	Owner  bool          // the owner typed it: counted, but held back by no limit and no pause

	Scheduled bool      // a timer fires it, by its id: a slot that is claimed already is done
	Cron      bool      // a line in a crontab fires it, which may stand there beside a timer
	Slot      time.Time // the slot that it answers, late; zero: the latest one, if that is recent

	Compact string // instructions: no turn, the session is compacted

	Delta func(text string) error // is given the agent's text as it arrives; its error ends the run
}

// errand is one fire: the job, and what was known of it before its run began.
type errand struct {
	id       string // of the run
	job      job.Job
	options  Options
	beside   []job.Job // all jobs of the directory
	previous runlog.Record
	guard    *lock.Guard // nil for what is no job: a turn of a conversation
	running  *lock.Guard // the run's own
	note     string      // what guard's file said before
	allowed  bool        // its run was permitted: what the owner wants at its end may start
	after    string      // the fingerprint of that, as it was permitted
	slot     time.Time   // the slot that it answers; zero: none
	rival    time.Time   // a slot that another run had claimed before
	question Question    // of a shell; else zero
	follow   bool        // its session is gone on with where a compaction took it
}

// Fire runs a job once. The record says how it ended; an error says that there is no record (nothing ran) or, beside a
// record, why it failed in a way that a caller may want to tell apart.
func (f *Firer) Fire(ctx context.Context, name string, o Options) (runlog.Record, error) {
	e, err := f.find(ctx, name, o)
	if err != nil {
		return runlog.Record{}, err
	}
	if err := f.claimSlot(ctx, &e); err != nil {
		return runlog.Record{}, err
	}
	record, err := f.respond(ctx, &e)
	f.settleSlot(e, record.Outcome)
	return record, err
}

// respond runs the job, unless it is running, or done with.
func (f *Firer) respond(ctx context.Context, e *errand) (runlog.Record, error) {
	if f.beaten(*e) {
		return runlog.Record{}, slot.ErrClaimed
	}
	guard, err := f.guard(ctx, e.job, e.options.Wait)
	if errors.Is(err, lock.ErrBusy) && f.yields(*e) {
		return runlog.Record{}, slot.ErrClaimed
	}
	if errors.Is(err, lock.ErrBusy) {
		return f.skip(ctx, *e)
	}
	if err != nil {
		return runlog.Record{}, err
	}
	e.guard, e.note = guard, guard.LastNote()
	defer f.flush(ctx)
	defer guard.Release()
	if err := f.contest(e); err != nil {
		return runlog.Record{}, err
	}
	if err := f.stillThere(e.job); err != nil {
		return runlog.Record{}, err
	}
	e.previous = f.previous(ctx, *e)
	if f.concluded(ctx, *e) {
		return e.previous, nil
	}
	return f.run(ctx, *e)
}

// run is a run from the first line of its record to the last.
func (f *Firer) run(ctx context.Context, e errand) (runlog.Record, error) {
	if e.guard == nil && e.job.Kind != job.Ask {
		f.closeLast(e.job)
	}
	r, err := f.open(&e)
	if err != nil {
		e.running.Release()
		return runlog.Record{}, err
	}
	defer func() { // the run's own lock last: a process that waits for it may fire the job again
		e.guard.Release()
		f.Runs.Leave(r.ID, e.running)
	}()
	working, done := f.obeyStop(ctx, r.ID)
	cause := f.carryOut(working, &e, r)
	done()
	ctx = context.WithoutCancel(ctx) // a run that was stopped still comes to its end
	later, cause := f.unspent(r, cause)
	if later != nil {
		return f.undo(ctx, e, r, later)
	}
	f.conclude(ctx, e.job, r, cause)
	if r.Outcome == runlog.Gated {
		cause = nil // nothing went wrong
	}
	f.settle(ctx, r)
	f.deliver(ctx, e, r, cause)
	if e.allowed {
		f.after(ctx, e, r)
	}
	f.putAway(ctx, e.job, r, cause)
	err = r.Finish(r.Outcome, r.Error)
	f.warn(f.Runs.ForgetStop(r.ID))
	return r.Record, errors.Join(err, cause)
}

// carryOut is everything between the two ends of the record.
func (f *Firer) carryOut(ctx context.Context, e *errand, r *runlog.Run) error {
	ctx, cancel := context.WithTimeoutCause(ctx, e.job.Timeout, errTimeout)
	defer cancel()
	after := f.fingerprint(e.job.After)
	if err := f.permit(e.job, e.options); err != nil {
		return err
	}
	e.allowed, e.after = true, after
	if e.job.Plain {
		return f.remind(ctx, e, r)
	}
	engine, err := f.engine(*e, r.Engine)
	if err != nil {
		return err
	}
	granted, err := f.reserve(ctx, e.job, e.options, r)
	if err != nil {
		return err
	}
	if err := f.claim(e); err != nil {
		return err
	}
	tools := f.tools(r)
	brief, err := f.prepare(ctx, *e, r, tools)
	if err != nil {
		return stopped(ctx, err)
	}
	talk, err := f.room().Enter(ctx, f.place(*e), engine, tools, r)
	if err != nil {
		return stopped(ctx, err)
	}
	defer talk.Leave()
	request, err := f.request(*e, r, tools, granted)
	if err != nil {
		return err
	}
	if e.options.Compact != "" {
		return stopped(ctx, f.compactNow(ctx, talk, request, r, e.options.Compact))
	}
	_, err = talk.Say(ctx, brief, request)
	if err == nil {
		err = f.holdToReport(ctx, e.job, r, talk, request)
	}
	return stopped(ctx, errors.Join(err, f.compact(ctx, r, talk, request, err)))
}

func (f *Firer) room() conversation.Room {
	return conversation.Room{Home: f.Home, Sessions: f.Sessions, Updates: f.Updates, Runs: f.Runs, Watch: f.Watch, Sleep: f.Sleep}
}

// Busy says whether the main conversation is in a turn right now.
func (f *Firer) Busy() bool { return f.room().Busy() }
