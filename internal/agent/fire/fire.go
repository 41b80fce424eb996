// Package fire fires jobs. It claims the slot, takes the job's lock, runs the owner's programs before and after the agent's turn, keeps
// runs that wait for an answer, and decides which jobs may run and which slots are due. Package run does what every run needs. A job may
// be fired at any moment and by several schedulers at once.
package fire

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// Firer fires the jobs of a data directory.
type Firer struct {
	r *run.Runner

	Answers  Answers
	Entries  Entries
	Monitors Monitors
	Pauses   Pauses
	Reports  Reports
	Rules    Rules
	Slots    Slots
}

// New returns the Firer of a runner.
func New(r *run.Runner) Firer {
	return Firer{r, Answers{r}, Entries{r}, Monitors{r}, Pauses{r}, Reports{r}, Rules{r}, Slots{r}}
}

// Options override a job's file for one fire.
type Options struct {
	Engine string        // "" is the engine of the job
	Model  string        // "" is the model of the job
	Input  string        // text that is added to the prompt as data
	Wait   time.Duration // how long to wait for the job's present run to end; 0 skips the fire at once
	Moved  bool          // the clock was set to another time
	Owner  bool          // the owner started it: its cost is counted, but no limit or pause applies

	Trigger

	Observe run.Observer
}

// Trigger says what fires a job.
type Trigger struct {
	Scheduled bool        // a timer fires the job, named by its id; a slot that is claimed already needs nothing more
	Cron      func() bool // reports whether it was a line in a crontab, which also counts as a timer; nil: it was not
	Slot      time.Time   // past slot to run now; zero: the latest one, if it is recent
}

// Fire runs a job once. The record says how the run ended. An error without a record means that nothing ran; an error beside a record is a
// failure that callers may want to distinguish.
func (b Firer) Fire(ctx context.Context, name string, o Options) (runlog.Record, error) {
	f, err := b.find(ctx, name, o)
	if err != nil {
		return runlog.Record{}, err
	}
	if f.held, err = b.r.Runs.Hold(f.run); err != nil { // before the claim, which is void if nobody holds its run
		return runlog.Record{}, err
	}
	defer f.held.Leave()
	if !o.Moved {
		err = f.claim.take(ctx)
	}
	if err != nil {
		return runlog.Record{}, err
	}
	record, err := f.respond(ctx)
	if errors.Is(err, runlog.ErrClosed) { // so it is the other process that settles the claim
		return record, err
	}
	f.claim.settle(record.Outcome)
	turn.New(b.r).Forks.Follow(ctx, record, true, turn.Options{Engine: o.Engine, Model: o.Model, Input: o.Input, Owner: o.Owner, Observe: o.Observe})
	return record, err
}

// FireEntry runs a webhook once with the data of an entry of the inbox. The run has the id of the entry. It waits while another run of the
// webhook is in progress. If the webhook may not run now, because of a pause, a spending limit or because the owner must do something
// first, the entry stays in the inbox; then there is an error and no record. The error is inbox.ErrGone if the entry was run already.
func (b Firer) FireEntry(ctx context.Context, run string, o Options) (runlog.Record, error) {
	none := runlog.Record{}
	e, err := b.r.Inbox.Find(run)
	if err != nil {
		return none, err
	}
	o.Trigger, o.Owner = Trigger{Scheduled: true}, false
	f, err := b.find(ctx, e.Hook, o)
	if err != nil {
		return none, err
	}
	f.run, f.entry = e.Run, &answered{Entry: e, r: b.r}
	if f.guard, err = f.r.Disk.Locks.WaitGuard(ctx, f.r.Home.JobLock(f.job.ID)); err != nil {
		return none, err
	}
	defer f.release(ctx)
	defer f.guard.Release()
	if over, err := f.entry.begun(ctx, f.job); over.Done() || err != nil {
		return over, err
	}
	f.previous = f.closePrevious(ctx)
	return f.r.Run(ctx, f.spec())
}

// Preview returns what Fire would do now, and changes nothing.
func (b Firer) Preview(ctx context.Context, name string, o Options) (run.Plan, error) {
	files, err := b.r.Jobs.Outline()
	if err != nil {
		return run.Plan{}, err
	}
	j, err := files.Open(name, false)
	if err != nil {
		return run.Plan{}, err
	}
	previous, _ := b.r.Runs.Noted(b.r.Home.JobLock(j.ID)) // zero: there is none
	f := &fire{r: b.r, job: j, options: o, all: files.Jobs, previous: previous, claim: &claim{at: o.Slot}}
	p, err := b.r.Preview(ctx, f.spec(), f.foresee)
	if err != nil {
		return run.Plan{}, err
	}
	_, err = f.permit()
	if err = cmp.Or((Rules{b.r}).bound(j, Trigger{}), err); err != nil {
		p.Refused = err.Error()
	}
	return p, nil
}

// find finds the job, and reports every job file that cannot be used.
func (b Firer) find(ctx context.Context, name string, o Options) (*fire, error) {
	b.r.Warn(b.r.Recover())
	files, err := b.r.Jobs.Outline()
	if err != nil {
		return nil, err
	}
	j, err := files.Open(name, o.Scheduled) // a timer fires the job of that id, even if a file has that name
	var own yamldoc.Faults
	errors.As(err, &own)
	Reports{b.r}.beforeFire(ctx, files.Faults, own)
	if err != nil {
		return nil, err
	}
	if err := (Rules{b.r}).bound(j, o.Trigger); err != nil {
		return nil, err
	}
	id, err := runlog.NewID(b.r.Disk.Now(), b.r.Random)
	return &fire{r: b.r, run: id, job: j, options: o, all: files.Jobs, claim: &claim{r: b.r, job: j, trigger: o.Trigger, run: id}}, err
}

// fire is one fire of a job. It is the origin of the run that follows.
type fire struct {
	r *run.Runner

	run       string // the run's id
	held      *runlog.Hold
	job       job.Job
	options   Options
	all       []job.Job     // all jobs of the data directory
	previous  runlog.Record // previous run of the job; zero if there is none
	guard     *lock.Guard
	claim     *claim
	wrong     error             // error of tool-policy.yaml
	permitted map[string]string // digests of the executables that may start, by their names; nil: the run is not permitted
	retried   int               // retries of an earlier attempt of the reminder, which was cut off

	entry *answered // entry of the inbox that the fire runs; nil: none
}

// respond runs the job, unless it is running or needs no run.
func (f *fire) respond(ctx context.Context) (runlog.Record, error) {
	// If another run serves the slot, this fire must never take the job's lock, even for a moment: that run may be about to take it, and
	// would be skipped.
	if f.claim.yields() && !(Slots{f.r}).Unanswered(f.job.ID, f.claim.rival) {
		return runlog.Record{}, slot.ErrClaimed
	}
	guard, err := f.lock(ctx)
	switch {
	case errors.Is(err, lock.ErrBusy) && f.claim.yields():
		return runlog.Record{}, slot.ErrClaimed
	case errors.Is(err, lock.ErrBusy):
		return f.skip(ctx)
	case err != nil:
		return runlog.Record{}, err
	}
	f.guard = guard
	defer f.release(ctx)
	defer guard.Release()
	if err := f.claim.contest(guard.LastNote()); err != nil {
		f.claim.at = time.Time{} // the claim stays void, so that the next tick fires the slot again
		return runlog.Record{}, err
	}
	if err := f.claim.ask(ctx); err != nil {
		return runlog.Record{}, err
	}
	if f.job.Kind == job.Reminder {
		if _, err := os.Lstat(f.job.Path); errors.Is(err, fs.ErrNotExist) { // another process ended or claimed it
			return runlog.Record{}, &plaintext.Unknown{What: "job", Name: f.job.ID}
		}
	}
	f.previous = f.closePrevious(ctx)
	if f.concluded(ctx) {
		return f.previous, nil
	}
	return f.r.Run(ctx, f.spec())
}

// lock takes the job's lock.
func (f *fire) lock(ctx context.Context) (*lock.Guard, error) {
	path := f.r.Home.JobLock(f.job.ID)
	if f.options.Wait == 0 {
		return lock.TryGuard(path)
	}
	waiting, cancel := context.WithTimeout(ctx, f.options.Wait)
	defer cancel()
	return f.r.Disk.Locks.WaitGuard(waiting, path)
}

// closePrevious returns the job's latest run before this one, whose id is in the lock file. If its process died, the record is ended and
// the failure reported. If the record was pruned or never written, it returns the zero Record.
func (f *fire) closePrevious(ctx context.Context) runlog.Record {
	id := strings.TrimSpace(f.guard.LastNote())
	if id == "" {
		return runlog.Record{}
	}
	if last, err := f.r.Runs.Load(id); err != nil || last.Done() {
		return last
	}
	cutOff, closeErr := f.r.Runs.Close(id)
	last, loadErr := f.r.Runs.Load(id)
	if closeErr != nil || loadErr != nil {
		return runlog.Record{}
	}
	if !cutOff {
		return last
	}
	Slots{f.r}.settleCutOff(ctx, last)
	if last.Kind != string(job.Reminder) && last.Outcome != runlog.Waiting { // a reminder's failure is reported after its last attempt
		Reports{f.r}.failure(ctx, last, "was cut off before it ended")
	}
	return last
}

// skip records a fire that did not take place because the job's lock is held.
func (f *fire) skip(ctx context.Context) (runlog.Record, error) {
	reason := "already running since a moment ago"
	if last, _ := f.r.Runs.Noted(f.r.Home.JobLock(f.job.ID)); last.ID != "" && !last.Done() {
		reason = "already running since " + last.Started.In(f.r.Zone).Format("2006-01-02 15:04:05")
	}
	left := f.r.Runs.Leftover(f.r.Home.JobLock(f.job.ID))
	if left != nil {
		reason = left.Error()
	}
	record, err := f.r.Skip(ctx, f.spec(), reason)
	if left != nil && record.ID != "" {
		Reports{f.r}.leftover(ctx, record, left)
	}
	return record, err
}

// flushLimit bounds the time for sending messages of earlier runs, so that they do not hold up a scheduler.
const flushLimit = time.Minute

// release calls the job's monitor, and sends what waits in the outbox. It runs after the job's lock was released, so that neither a
// monitor nor an unreachable mail server prevents the job from running. tick repeats a call that fails.
func (f *fire) release(ctx context.Context) {
	if f.job.Heartbeat != "" {
		f.r.Warn(Monitors{f.r}.callOwed(ctx, func(job string, _ runlog.Record) bool { return job == f.job.ID }))
	}
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	f.r.Warn(f.r.Notify().Sweep(ctx))
	if _, err := f.r.Outbox.Flush(ctx); err != nil && ctx.Err() == nil {
		f.r.Warn(err)
	}
}
