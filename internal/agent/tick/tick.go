// Package tick does the work of one minute: it starts routines and reminders that are due, and webhooks whose events wait in the inbox,
// reports long overdue reminders in one update and sets them again if only the date was wrong, completes the records of runs whose process
// died, continues runs whose question the owner has answered, retries undelivered messages, sends the summary of the week, calls the
// owner's monitors and, once a day, removes old data. It waits for no engine. Two ticks at once do no harm: the second one finds the lock
// held and returns.
package tick

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
	"github.com/ollim/ollim/internal/state/slot"
)

// Minute is one tick of one data directory.
type Minute struct {
	Runner *run.Runner
	Start  func(job.Job) error // starts a fire of the job, and does not wait for it
	// StartLate starts a fire that answers a slot which was missed.
	StartLate func(job.Job, time.Time) error
	Converse  func() error                         // starts a process that answers abandoned messages of the owner; nil: they wait
	Nudge     func() error                         // starts a process that lets the agent of an idle fork ask whether to end it
	Entry     func(run string) (process.ID, error) // starts a process that runs an entry of the inbox
	Continue  func(run string) error               // starts a process that continues a run whose question was answered, or ends it
	Sweep     func(context.Context) error          // removes the sessions of routines that are gone
	Parallel  func([]job.Job) int                  // of all jobs, the fires of routines in progress from which on further slots wait; nil: no limit
	Drain     func() error                         // starts a process that starts the slots that wait, unless there is one
	Keep      int                                  // days that run records stay
	Retain    Retain                               // how long the rest stays
	Heartbeat string                               // URL of the owner's monitor; "": none
	Space     func(dir string) (uint64, error)     // returns the free space of a file system, in bytes; nil: it is not known
	Bill      func(context.Context) error          // tells the owner once a day what is wrong with the costs
	Models    func(context.Context) error          // tells the owner once a day what is wrong with the models; nil: nobody looks
	Typed     bool                                 // a person typed it, so it does not show that a scheduler runs ticks
	Summary   func() (string, error)               // the last week in words, without what the error says; nil: the owner wants none

	read func() (*page, error) // reads the page at the first call
}

// Bounds of a minute.
const (
	maxStarts   = 10                 // reminders and late slots that one minute starts; the rest is due in the next
	overdue     = 24 * time.Hour     // age from which a reminder is reported and not run
	retryAfter  = 5 * time.Minute    // from a failed attempt, or one that a pause or runs in progress held back, to the next
	maxNote     = 7 * 24 * time.Hour // in which a job's agent can read that its question was not answered
	askAgain    = time.Hour          // after a fire that was refused
	startTime   = time.Minute        // in which a fire that was started takes its job's lock
	orphanAge   = 24 * time.Hour     // how far back a minute looks for runs that died; once a day it looks further
	sendLimit   = 45 * time.Second   // for messages of earlier runs
	callLimit   = 15 * time.Second   // for heartbeats
	removeLimit = 10 * time.Second   // for old records, and for what agents have left
)

// Action is something that a minute does, or would do.
type Action struct {
	Do   string    `json:"do"` // start, collect, restore or nudge
	Job  string    `json:"job"`
	Name string    `json:"name"`
	At   time.Time `json:"at"` // when it was due
}

// What a minute does.
const (
	Start   = "start"
	collect = "collect"
	restore = "restore" // set a reminder again that was collected at a wrong date
	nudge   = "nudge"   // the agent of an idle interactive fork
)

// Plan returns what Pass would do now with reminders and routines, and changes nothing.
func (m Minute) Plan(ctx context.Context) ([]Action, error) {
	files, err := m.Runner.Jobs.Load()
	if err != nil {
		return nil, err
	}
	due, late, err := reminderList{m}.due(ctx, files, false)
	var actions []Action
	back, backErr := reminderList{m}.misdated(files)
	err = errors.Join(err, backErr)
	for _, j := range back {
		actions = append(actions, m.action(restore, j, j.RunAt))
	}
	for _, j := range late {
		actions = append(actions, m.action(collect, j, j.RunAt))
	}
	for _, j := range due {
		actions = append(actions, m.action(Start, j, j.RunAt))
	}
	if paused, _, pauseErr := m.Runner.Spend.Paused(); paused || pauseErr != nil {
		return actions, errors.Join(err, pauseErr)
	}
	if f, idle, forkErr := turn.New(m.Runner).Forks.Idle(ctx); forkErr != nil {
		err = errors.Join(err, forkErr)
	} else if idle {
		actions = append(actions, Action{Do: nudge, Job: session.ForkKey, Name: f.Topic, At: f.Last.Add(turn.ForkIdle).In(m.Runner.Zone)})
	}
	history, historyErr := m.Runner.Slots.History()
	entries, entriesErr := m.firer().Entries.Plan(ctx)
	unusable := m.Runner.Unusable()
	err = errors.Join(err, historyErr, entriesErr, unusable)
	for _, e := range entries {
		j, _ := files.ByID(e.Hook)
		actions = append(actions, m.action(Start, j, e.Arrived))
	}
	if unusable != nil {
		return actions, err
	}
	for _, j := range files.Only(job.Routine).Jobs {
		known := slot.Extend(history[j.ID], m.firer().Slots.ScheduleOf(j), m.now())
		at, ok, dueErr := m.firer().Slots.Due(j, known, m.now())
		err = errors.Join(err, dueErr)
		if !ok {
			at, ok = slots{m}.missedLately(j, known)
		}
		if ok && !m.firer().Rules.HeldBack(ctx, j, false) {
			actions = append(actions, m.action(Start, j, at))
		}
	}
	return actions, err
}

func (m Minute) action(do string, j job.Job, at time.Time) Action {
	return Action{Do: do, Job: j.ID, Name: j.Name(), At: at.In(m.Runner.Zone)}
}

// Pass does the minute's work. An error in one part does not stop the others. Once a day the models are checked after it. That may wait
// for services, and holds nothing up: the next minute's tick may begin meanwhile.
func (m Minute) Pass(ctx context.Context) error {
	m.read = sync.OnceValues(m.page)
	newDay, err := m.pass(ctx)
	if newDay && m.Models != nil && ctx.Err() == nil {
		err = errors.Join(err, m.Models(ctx))
	}
	return err
}

// pass does the minute's work while it holds the tick's lock. newDay reports whether the daily work was done.
func (m Minute) pass(ctx context.Context) (newDay bool, err error) {
	before, _ := Seen(m.Runner.Home) // a fault of the page is reported when the page is read
	seen := m.now()
	if m.Typed {
		if seen = before; seen.Before(never()) {
			seen = never()
		}
	}
	path := lockPath(m.Runner.Home)
	guard, err := lock.TryGuard(path)
	if errors.Is(err, lock.ErrBusy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer guard.Release()
	m.Runner.Warn(m.Runner.Recover())
	_ = os.Chtimes(path, seen, seen) // if it fails, Seen has only the page
	pauseErr := m.firer().Pauses.End(ctx)
	files, err := m.Runner.Jobs.Load()
	if err == nil {
		m.firer().Reports.BadFiles(ctx, files.Faults)
		err = reminderList{m}.reminders(ctx, files)
		unusable := m.Runner.Unusable() // the processes that this one starts would find it, and nobody reads their errors
		if unusable == nil {
			unusable = slots{m}.routines(ctx, files)
		}
		err = errors.Join(err, unusable)
	}
	err = errors.Join(err, pauseErr, m.messages(ctx), m.fork(ctx)) // the owner goes first, and the lock of the inbox may be held
	_, entriesErr := m.firer().Entries.Start(ctx, m.Entry)
	err = errors.Join(err, entriesErr)
	sending, cancel := limited(ctx, sendLimit)
	defer cancel()
	m.firer().Slots.EndOrphans(sending, m.now().Add(-orphanAge), m.lookedAt(before))
	err = errors.Join(err, m.questions(sending, files))
	err = errors.Join(err, m.notices(sending, files))
	err = errors.Join(err, weekly{m}.summary(ctx))
	if _, sendErr := m.Runner.Outbox.Flush(sending); sendErr != nil && sending.Err() == nil {
		err = errors.Join(err, sendErr)
	}
	newDay, dailyErr := m.daily(ctx, sending)
	return newDay, m.heartbeats(ctx, errors.Join(err, dailyErr))
}

// lookedAt returns an instant before which every record was written that earlier ticks have seen, the latest of which was at before. It is
// zero if there was no tick, or the clock was set back since.
func (m Minute) lookedAt(before time.Time) time.Time {
	const margin = 2 * time.Minute // for a tick that was killed
	if before.IsZero() || before.After(m.now()) {
		return time.Time{}
	}
	return before.Add(-margin)
}

// notices notifies the owner of what is due: what has ended, what is full or broken, reminders, and what quiet hours held.
func (m Minute) notices(ctx context.Context, files job.Set) error {
	r := m.Runner
	health := notify.Health{Book: r.Notify(), Outbox: r.Outbox, Home: r.Home, Disk: r.Disk}
	err := errors.Join(health.Delivery(ctx), health.Usable(ctx, r.Unusable()), fire.New(r).Rules.Recheck(ctx, files))
	if m.Space != nil {
		free, spaceErr := m.Space(r.Home.State())
		if spaceErr == nil {
			spaceErr = health.Full(ctx, free)
		}
		err = errors.Join(err, spaceErr)
	}
	return errors.Join(err, health.Book.Sweep(ctx))
}

// heartbeats calls the monitors: those of jobs, and the owner's own if the minute's work, whose error is given, went well.
func (m Minute) heartbeats(ctx context.Context, err error) error {
	calling, cancel := limited(ctx, callLimit)
	defer cancel()
	if err == nil && m.Heartbeat != "" {
		m.firer().Monitors.Call(calling, "tick", m.Heartbeat)
	}
	return errors.Join(err, m.firer().Monitors.CallOwed(calling))
}

// limited returns ctx with a time limit, which begins when the result is first used: a process that does not wait need not handle
// signals (two threads), and most minutes find nothing to send.
func limited(ctx context.Context, limit time.Duration) (lazy, context.CancelFunc) {
	cancel := func() {}
	return sync.OnceValue(func() (begun context.Context) {
		begun, cancel = context.WithTimeout(ctx, limit)
		return begun
	}), func() { cancel() }
}

// lazy is a context that is made when it is first used.
type lazy func() context.Context

func (c lazy) Deadline() (time.Time, bool) { return c().Deadline() }
func (c lazy) Done() <-chan struct{}       { return c().Done() }
func (c lazy) Err() error                  { return c().Err() }
func (c lazy) Value(key any) any           { return c().Value(key) }

// messages starts the answer to waiting messages of the owner whose senders have died.
func (m Minute) messages(ctx context.Context) error {
	abandoned, err := m.Runner.Queue.Abandoned(ctx)
	if err != nil || !abandoned || m.Converse == nil {
		return err
	}
	return m.Converse()
}

// fork starts a prompt to the agent of the interactive fork if the fork is idle.
func (m Minute) fork(ctx context.Context) error {
	_, idle, err := turn.New(m.Runner).Forks.Idle(ctx)
	if err != nil || !idle {
		return err
	}
	return m.Nudge()
}

func (m Minute) firer() fire.Firer { return fire.New(m.Runner) }

func (m Minute) now() time.Time { return m.Runner.Disk.Now() }

// reminderList starts the reminders that are due, and collects those that are too late.
type reminderList struct{ m Minute }

func (r reminderList) reminders(ctx context.Context, files job.Set) error {
	due, late, err := r.due(ctx, files, true)
	if err != nil {
		return err
	}
	err = errors.Join(r.restore(ctx, files), r.collect(ctx, late), r.m.noteStarts(due))
	for _, j := range due {
		err = errors.Join(err, r.m.Start(j))
	}
	return err
}

// due returns the reminders to start, oldest first, and those that are overdue. While everything is paused there are only plain ones, or
// none. If tell is set, those that cannot be started are reported.
func (r reminderList) due(ctx context.Context, files job.Set, tell bool) (start, late []job.Job, err error) {
	paused, _, err := r.m.Runner.Spend.Paused()
	if err != nil || paused && r.m.firer().Pauses.HoldsReminders() {
		return nil, nil, err
	}
	p, err := r.m.page()
	if err != nil {
		return nil, nil, err
	}
	jobs := files.Only(job.Reminder).Jobs
	slices.SortStableFunc(jobs, func(a, b job.Job) int { return a.RunAt.Compare(b.RunAt) })
	for _, j := range jobs {
		last, _ := r.m.Runner.Runs.Noted(r.m.Runner.Home.JobLock(j.ID)) // the zero Record when there is none
		switch {
		case !j.Enabled || j.RunAt.After(r.m.now()), r.m.firer().Rules.Elsewhere(j), paused && !j.Plain:
		case r.m.now().Sub(j.RunAt) > overdue && (j.Attempt() == job.Waiting || j.Attempt() == job.First && last.ID == ""): // collecting cut off
			late = append(late, j)
		case r.resting(last) || r.m.within(p.Started[j.ID], startTime):
		case r.m.firer().Rules.HeldBack(ctx, j, tell):
		default:
			start = append(start, j)
		}
	}
	return start[:min(len(start), maxStarts)], late, nil
}

// resting reports whether it is too early for another attempt. The run of an earlier reminder with the same id does not count.
func (r reminderList) resting(last runlog.Record) bool {
	if last.ID == "" {
		return false
	}
	if !last.Done() {
		return r.m.Runner.Runs.Alive(last) || r.m.within(last.Started, retryAfter)
	}
	switch last.Outcome {
	case runlog.Waiting: // the run continues with the answer
		return true
	case runlog.Refused:
		return r.m.within(*last.Finished, askAgain)
	case runlog.Failed, runlog.Timeout, runlog.Interrupted, runlog.Paused:
		return r.m.within(*last.Finished, retryAfter)
	}
	return false
}

// within reports whether an instant is less than d ago. It is false for an instant in the future, because the clock was set back since.
func (m Minute) within(at time.Time, d time.Duration) bool {
	ago := m.now().Sub(at)
	return ago >= 0 && ago < d
}
