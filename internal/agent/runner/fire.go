package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/queue"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// Options override a job's file or the settings for one run.
type Options struct {
	Engine      string        // "" is the job's
	Model       string        // "" is the job's
	Input       string        // added to the prompt as data
	Thinking    string        // of the main conversation; "" is the owner's setting
	Permissions policy.Mode   // of the main conversation; "" is the owner's setting
	Wait        time.Duration // for a run of the same job to end; 0 skips at once
	Moved       bool          // the clock is not the real one
	Owner       bool          // the owner typed it: its cost is counted, but no limit or pause applies

	Trigger

	Observe Observer
	Queued  func(queue.Place) // called if the owner's message must wait for others; may be nil
}

// Trigger is what fires a job.
type Trigger struct {
	Scheduled bool        // a timer fires, by the job's id; nothing is to be done for a slot that is claimed
	Cron      func() bool // reports whether a line in a crontab fires, which a timer may do as well; nil: none does
	Slot      time.Time   // the past slot to run now; zero: the latest one if it is recent
}

// fire is one fire of a job. It is the origin of the run that follows.
type fire struct {
	r *Runner

	run       string // the run's id
	job       job.Job
	options   Options
	all       []job.Job     // all jobs of the data directory
	previous  runlog.Record // the job's previous run; zero if there is none
	guard     *lock.Guard
	slot      time.Time         // slot that the fire runs for; zero: none
	rival     time.Time         // a slot that another run had claimed before
	wrong     error             // error of tool-policy.yaml
	permitted map[string]string // digests of the executables that may start, by their names; nil: the run is not permitted
	retried   int               // retries of an earlier attempt of the reminder, which was cut off

	entry *answered // entry of the inbox that the fire runs; nil: none
}

// answered is an entry of the inbox.
type answered struct {
	inbox.Entry
	taken bool // moved to the directory of the run
}

// Fire runs a job once. The record says how the run ended. An error without a record means that nothing ran; an error beside a record is a
// failure that callers may want to distinguish.
func (b Firer) Fire(ctx context.Context, name string, o Options) (runlog.Record, error) {
	f, err := b.find(ctx, name, o)
	if err != nil {
		return runlog.Record{}, err
	}
	if err := f.claimSlot(ctx); err != nil {
		return runlog.Record{}, err
	}
	record, err := f.respond(ctx)
	f.settleSlot(record.Outcome)
	Forks{f.r}.Follow(ctx, record, true, o)
	return record, err
}

// respond runs the job, unless it is running or needs no run.
func (f *fire) respond(ctx context.Context) (runlog.Record, error) {
	// If another run serves the slot, this fire must not take the job's lock even for a moment: that run may be about to take it, and
	// would be skipped.
	if f.yields() && !(Slots{f.r}).Unanswered(f.job.ID, f.rival) {
		return runlog.Record{}, slot.ErrClaimed
	}
	guard, err := f.lock(ctx)
	switch {
	case errors.Is(err, lock.ErrBusy) && f.yields():
		return runlog.Record{}, slot.ErrClaimed
	case errors.Is(err, lock.ErrBusy):
		return f.skip(ctx)
	case err != nil:
		return runlog.Record{}, err
	}
	f.guard = guard
	defer f.release(ctx)
	defer guard.Release()
	if err := f.contest(); err != nil {
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

// find finds the job, and reports every job file that cannot be used.
func (b Firer) find(ctx context.Context, name string, o Options) (*fire, error) {
	files, err := b.r.Jobs.Outline()
	if err != nil {
		return nil, err
	}
	j, err := files.Open(name, o.Scheduled) // a timer fires the job of that id, even if a file has that name
	var own yamldoc.Faults
	errors.As(err, &own)
	b.r.warn(Reports{b.r}.badFiles(ctx, files.Faults, own))
	b.r.warn(Reports{b.r}.policy(ctx))
	if err != nil {
		return nil, err
	}
	id, err := runlog.NewID(b.r.Disk.Now(), b.r.Random)
	return &fire{r: b.r, run: id, job: j, options: o, all: files.Jobs}, err
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
	if cutOff {
		Slots{f.r}.settleCutOff(last)
	}
	if cutOff && last.Kind != string(job.Reminder) && last.Outcome != runlog.Waiting { // a reminder is reported after its last attempt
		Reports{f.r}.failure(ctx, last, "was cut off before it ended")
	}
	return last
}

// lastRun returns the latest run of a job, as its lock file notes it; the zero Record if there is none.
func (b Firer) lastRun(id string) runlog.Record {
	record, _ := b.r.Runs.Noted(b.r.Home.JobLock(id))
	return record
}

// skip records a fire that did not happen because the job's lock is held.
func (f *fire) skip(ctx context.Context) (runlog.Record, error) {
	reason := "already running since a moment ago"
	if last := NewFirer(f.r).lastRun(f.job.ID); last.ID != "" && !last.Done() {
		reason = "already running since " + last.Started.In(f.r.Zone).Format("2006-01-02 15:04:05")
	}
	left := f.r.Runs.Leftover(f.r.Home.JobLock(f.job.ID))
	if left != nil {
		reason = left.Error()
	}
	w, err := f.r.begin(ctx, f.spec())
	if err != nil {
		return runlog.Record{}, err
	}
	defer w.release()
	err = w.run.Finish(runlog.Skipped, reason)
	if left != nil {
		Reports{f.r}.leftover(ctx, w.run.Record, left)
	}
	return w.run.Record, err
}

// ReportBadFiles reports each job file that cannot be used, and each that can be used again.
func (t Reports) BadFiles(ctx context.Context, faults yamldoc.Faults) {
	t.r.warn(t.badFiles(ctx, faults, nil))
}

// reportBadFiles is ReportBadFiles. It warns on standard error only when it also notifies the owner, because cron would mail a warning at
// every fire. own are the faults of the job itself, which are returned as an error anyway.
func (t Reports) badFiles(ctx context.Context, faults, own yamldoc.Faults) error {
	if len(faults) == 0 && t.r.Notices.Empty() {
		return nil
	}
	book := t.r.Notify()
	var err error
	present := map[string]bool{}
	for _, fault := range faults {
		c := t.causeOf(fault)
		if present[c.Key()] { // only the first fault of a file is reported
			continue
		}
		present[c.Key()] = true
		told, openErr := book.Open(ctx, c)
		if err = errors.Join(err, openErr); told && !slices.Contains(own, fault) {
			t.r.Disk.Warn(fault.Error())
		}
	}
	open, readErr := book.OpenCauses()
	for key, e := range open {
		if e.Kind == string(notify.File) && !present[key] {
			err = errors.Join(err, book.Close(ctx, key, "can be used again"))
		}
	}
	return errors.Join(err, readErr)
}

// badFile returns the cause of an invalid job file.
func (t Reports) causeOf(fault *yamldoc.Fault) notify.Cause {
	name := fault.File
	if rel, err := filepath.Rel(string(t.r.Home), fault.File); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	return notify.BadFile(name, fault.Error())
}

// MissedByFile adds the slots that were missed while a job's file was invalid to the cause of that file.
func (t Reports) MissedByFile(ctx context.Context, fault *yamldoc.Fault, job string, n int) error {
	c := t.causeOf(fault)
	c.Jobs = []notify.Affected{{ID: job, Name: t.labelOf(job), Count: notice.Count{Missed: n}}}
	_, err := t.r.Notify().Open(ctx, c)
	return err
}

// reportPolicy reports that tool-policy.yaml waits for approval. It does not report errors of the file or the approvals: every run does.
func (t Reports) policy(ctx context.Context) error {
	extra, err := t.r.Approvals.Policy()
	if err != nil {
		return nil //nolint:nilerr // permit returns the error
	}
	c := notify.Cause{
		Kind: notify.Approval, Subject: approval.PolicyName, Name: approval.PolicyName,
		Text:   approval.PolicyName + " differs from what you approved, so it gives no tools",
		Remedy: "to see the changes and approve them: `ollim approve " + approval.PolicyName + "`",
	}
	if !extra.Waits {
		return t.r.Notify().Close(ctx, c.Key(), "gives its tools again")
	}
	told, err := t.r.Notify().Open(ctx, c)
	if told {
		t.r.Disk.Warn(c.Text + "; " + c.Remedy)
	}
	return err
}
