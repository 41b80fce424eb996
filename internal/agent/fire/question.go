package fire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

// Answers continues runs that asked the owner a question.
type Answers struct{ r *run.Runner }

// Give stores the owner's answer to the question of a run; Continue then continues the run. The error is a *question.Closed if the run
// does not wait for an answer.
func (a Answers) Give(ctx context.Context, run, text string) (question.Question, error) {
	record, err := a.known(run)
	if err != nil {
		return question.Question{}, err
	}
	standing, err := a.r.Runs.Standing(run)
	if err != nil {
		return question.Question{}, err
	}
	switch record = a.r.Runs.CutOff(record); {
	case record.Outcome == runlog.Waiting, record.Outcome == "" && standing.Asking(): // in the second case the turn has not ended yet
	case record.Outcome == "":
		return question.Question{}, &question.Closed{Run: run, Reason: "it is in progress and waits for no answer"}
	default: // a question that was never asked may have left a file
		return question.Question{}, &question.Closed{Run: run, Reason: "it has ended (" + string(record.Outcome) + ") and waits for no answer"}
	}
	return a.r.Questions.Answer(ctx, run, update.Clean(text))
}

// known loads the record of a run that the owner has named.
func (a Answers) known(run string) (runlog.Record, error) {
	a.r.Warn(a.r.Recover())
	record, err := a.r.Runs.Load(run)
	if errors.Is(err, fs.ErrNotExist) {
		err = &plaintext.Unknown{What: "run", Name: run}
	}
	return record, err
}

// continueWait is how long a run waits for a fire of its job before it continues.
const continueWait = 24 * time.Hour

// Continue continues a run whose question was answered, as an automatic run, or ends a run whose question has expired. While
// everything is paused, a spending limit is reached or the job is not approved, the run keeps waiting with its answer, and the error
// gives the reason. The error is a *question.Closed if the run does not wait.
func (a Answers) Continue(ctx context.Context, id string, o run.Observer) (runlog.Record, error) {
	record, err := a.known(id)
	if err != nil {
		return record, err
	}
	guard, err := a.waitForJob(ctx, record.Job)
	if err != nil {
		return record, err
	}
	f := &fire{r: a.r, run: id, guard: guard, options: Options{Observe: o}, claim: &claim{r: a.r, job: job.Job{ID: record.Job}, run: id}}
	defer f.release(ctx)
	defer guard.Release()
	c := &continuation{f: f}
	q, record, err := c.awaited(ctx)
	if err != nil {
		return record, err
	}
	files, err := a.r.Jobs.Outline()
	if err != nil {
		return record, err
	}
	f.all = files.Jobs
	j, known := files.ByID(record.Job)
	if known {
		f.job, err = files.Whole(j)
		known = err == nil
	}
	if q.Expired(a.r.Disk.Now()) {
		if q, err = a.r.Questions.Lapse(ctx, id); err != nil {
			return record, err
		}
	}
	switch {
	case q.Lapsed && q.Gone:
		reason := "its question is gone: " + a.r.Home.Relative(a.r.Home.Question(id)) + " was removed or damaged"
		text := fmt.Sprintf("%s has ended: %s (%s).", record.Label(), reason, plaintext.Short(plaintext.Line(q.Text), 200))
		return c.giveUp(ctx, runlog.Expired, reason, text)
	case q.Lapsed:
		text := fmt.Sprintf("%s has ended: nobody answered its question of %s (%s).",
			record.Label(), q.Asked.Format("2006-01-02 15:04"), plaintext.Short(plaintext.Line(q.Text), 200))
		return c.giveUp(ctx, runlog.Expired, "no answer came until "+q.Expires.Format("2006-01-02 15:04"), text)
	case q.Answer == "":
		return record, &question.Closed{Run: id, Reason: "its question has no answer yet"}
	case Rules(a).Elsewhere(f.job): // it goes on there
		return record, Rules(a).bound(f.job, Trigger{})
	case !known:
		return c.giveUp(ctx, runlog.Refused, "its job no longer exists", record.Label()+" asked a question and cannot continue: its job no longer exists")
	}
	return c.goOn(ctx, record, q)
}

// waitForJob takes the lock of a job when no fire of it is in progress.
func (a Answers) waitForJob(ctx context.Context, id string) (*lock.Guard, error) {
	path := a.r.Home.JobLock(id)
	if left := a.r.Runs.Leftover(path); left != nil {
		return nil, left
	}
	waiting, cancel := context.WithTimeout(ctx, continueWait)
	defer cancel()
	return a.r.Disk.Locks.WaitGuard(waiting, path)
}

// AskAgain sends a question whose run was killed before it sent it.
func (a Answers) AskAgain(ctx context.Context, q question.Question) error {
	run, err := a.r.Runs.At(q.Run)
	if err != nil {
		return err
	}
	m := tools.Asking(q)
	fate := outbox.Refused
	if a.r.Outbox.Configured() {
		var receipt outbox.Receipt
		a.r.Warn(notify.Remember(ctx, a.r.Sessions, run, q.Message))
		m.ID, m.Run, m.Job, m.Label, m.Kind, m.Created = q.Message, run.ID, run.Job, run.Label(), outbox.Ping, a.r.Disk.Now()
		receipt, err = a.r.Outbox.Send(ctx, m)
		fate = receipt.Fate
		a.r.Warn(err) // a message that is in the outbox already is sent from there
		a.r.Warn(a.r.Sessions.Received(ctx, q.Message, receipt.Outside...))
	}
	if fate == outbox.Refused {
		if err := a.r.Updates.Add(ctx, m.Text, q.Run); err != nil {
			return err
		}
	}
	return a.r.Questions.Edit(ctx, q.Run, func(q *question.Question) error { q.Sent = true; return nil })
}

// questions returns the unanswered questions of earlier runs of the job.
func (f *fire) questions() (open []question.Question) {
	all, err := f.r.Questions.List()
	f.r.Warn(err)
	for _, q := range all {
		if q.Job == f.job.ID && q.Answer == "" && q.Run != f.run {
			open = append(open, q)
		}
	}
	return open
}

// forgetQuestions drops the expired questions of earlier runs once the agent of the job has been told about them.
func (f *fire) forgetQuestions(ctx context.Context, run runlog.Record) {
	if run.Turns == 0 {
		return
	}
	for _, q := range f.questions() {
		if r, err := f.r.Runs.Load(q.Run); q.Lapsed && (err != nil || r.Outcome != runlog.Waiting) {
			f.r.Warn(f.r.Questions.Drop(ctx, q.Run))
		}
	}
}

// continuation is the second part of a run that has asked the owner a question. It has what is left of the run's limits, and those
// permissions of the run that its job still has.
type continuation struct {
	f *fire

	question question.Question
	before   runlog.Record
	settled  float64 // USD that the run has cost
	session  string  // as it is now
}

// awaited returns the question of the fire's run, and its record. The job's lock is held, so an unfinished record belongs to a process
// that died.
func (c *continuation) awaited(ctx context.Context) (q question.Question, r runlog.Record, err error) {
	f := c.f
	f.previous = f.closePrevious(ctx)
	_, err = f.r.Runs.Close(f.run)
	r, loadErr := f.r.Runs.Load(f.run)
	if err = errors.Join(err, loadErr); err != nil {
		return q, r, err
	}
	if r.Scheduled != nil && r.Kind == string(job.Routine) {
		f.claim.at = *r.Scheduled
	}
	if r.Outcome != runlog.Waiting {
		return q, r, &question.Closed{Run: f.run, Reason: "it has ended (" + string(r.Outcome) + ")"}
	}
	q, err = Answers{f.r}.awaited(ctx, r)
	return q, r, err
}

// awaited returns the question of a run that waits. If its file was removed or damaged, it is replaced by a question that has expired.
func (a Answers) awaited(ctx context.Context, r runlog.Record) (question.Question, error) {
	if q, err := a.r.Questions.Load(r.ID); err == nil && q.Run == r.ID {
		return q, nil
	}
	now := a.r.Disk.Now().In(a.r.Zone)
	return a.r.Questions.Replace(ctx, question.Question{
		Run: r.ID, Job: r.Job, Name: r.Name, Text: r.Question, Asked: r.Started, Expires: now, Sent: true, Gone: true,
	})
}

// giveUp ends a run that waits and cannot continue.
func (c *continuation) giveUp(ctx context.Context, outcome runlog.Outcome, reason, text string) (runlog.Record, error) {
	f, s := c.f, run.Spec{Identity: run.Identity{Run: c.f.run}, Origin: c.f}
	if f.job.ID != "" {
		s = f.spec()
	}
	record, err := f.r.Abandon(ctx, s, outcome, reason, text)
	if record.ID == "" {
		return record, err
	}
	f.claim.settle(outcome)
	if f.job.Kind != job.Routine { // the agent of a routine reads at its next fire that the question expired
		f.r.Warn(f.r.Questions.Drop(ctx, f.run))
	}
	return record, err
}

// goOn continues the fire's run. If the job is not permitted to run any more, the run keeps waiting.
func (c *continuation) goOn(ctx context.Context, record runlog.Record, q question.Question) (runlog.Record, error) {
	f := c.f
	if err := f.Permit(); err != nil {
		if errors.Is(err, run.ErrRefused) {
			record.Error = plaintext.OneLine(err)
			f.r.ReportRefusal(ctx, record, err, 0)
		}
		return record, err
	}
	bill, billErr := f.r.Runs.Bill(record)
	standing, err := f.r.Runs.Standing(f.run)
	if err = errors.Join(billErr, err); err != nil {
		return record, err
	}
	if cost := bill.Cost - record.Settled; record.Accounted && (cost > 0 || bill.Starts > 0) { // the cost of a part that was cut off
		if err := f.r.Spend.Settle(ctx, record.Account(), max(cost, 0)); err != nil {
			return record, err
		}
	}
	c.question, c.before, c.settled, c.session = q, record, bill.Cost, standing.Session
	done, err := f.r.Run(ctx, c.spec())
	switch {
	case done.ID == "":
		return record, err
	case !errors.Is(err, runlog.ErrClosed): // else it is the other process that settles the claim
		f.claim.settle(done.Outcome)
	}
	return done, err
}

// spec returns the Spec of the job's fire with the answer, in the session of the run.
func (c *continuation) spec() run.Spec {
	s, b := c.f.spec(), c.before
	s.Identity.Run, s.Identity.Again, s.Origin = b.ID, true, c
	s.Input = prompt.Input{Task: s.Input.Task, Piped: prompt.Piped{Answer: &c.question}}
	s.Input.Task.Background, s.Input.Task.AllowPing = true, b.AllowPing && s.Policy.AllowPing
	if !c.carriedOver() {
		s.Engine = run.Choice{Name: b.Engine, Model: b.Model, Fallback: s.Engine.Fallback, Thinking: s.Engine.Thinking, Needs: s.Engine.Needs}
	}
	s.Policy.Tools = slices.DeleteFunc(slices.Clone(b.Tools), func(p string) bool { return !slices.Contains(s.Policy.Tools, p) })
	s.Policy.Dirs = slices.DeleteFunc(slices.Clone(s.Policy.Dirs), func(d policy.Root) bool { return !slices.Contains(b.Dirs, run.DirOf(d)) })
	s.Policy.AllowPing, s.Policy.Deliver = s.Input.Task.AllowPing, false
	_, main, _ := c.f.r.Patterns(true) // Permit has returned the error
	c.f.in(&s, c.conversation(), main)
	s.Limits.Time = cmp.Or(c.question.Left, s.Limits.Time)
	s.Limits.Cost = c.left(s.Limits.Cost)
	if perRun := c.f.r.Spend.Limits.PerRun; !run.IsScript(b.Engine) && !math.IsInf(perRun, 1) {
		s.Limits.Cost = min(c.left(perRun), cmp.Or(s.Limits.Cost, perRun))
	}
	return s
}

// carriedOver reports whether the routine's session has moved to another engine than the run's. The answer then goes to the job's present
// engine.
func (c *continuation) carriedOver() bool {
	if !c.before.Persistent {
		return false
	}
	id, err := c.f.r.Sessions.Routine(c.before.Job)
	kind := engine.Kind(c.before.Engine)
	return err == nil && id != "" && c.f.r.Archive.Holder(id) != kind
}

// leastCost stands for a limit that is used up, in USD; 0 would mean no limit.
const leastCost = 1e-6

// left returns the rest of a limit of the run's cost; 0 is no limit.
func (c *continuation) left(limit float64) float64 {
	if limit == 0 {
		return 0
	}
	return max(limit-c.settled, leastCost)
}

// conversation returns the routine's conversation as it is now, or one that resumes the run's own session.
func (c *continuation) conversation() conversation.Conversation {
	b := c.before
	if b.Persistent {
		return conversation.Routine{Sessions: c.f.r.Sessions, ID: b.Job, Shown: c.f.previous.ShownUntil(), Own: ownRun(c.f.r.Runs, c.f.job.ID, c.f.previous)}
	}
	own := conversation.Conversation(conversation.Isolated{})
	if b.Shared {
		own = conversation.Branch{Sessions: c.f.r.Sessions, Busy: c.f.r.Busy}
	}
	return conversation.Resumed{Conversation: own, Session: c.session, Since: b.ShownUntil()}
}

// Begin replaces the record by the existing one of the run, with the facts of this process.
func (c *continuation) Begin(r *runlog.Record) error {
	now, previous := *r, c.f.previous
	*r = c.before
	r.Process = now.Process
	r.Deadline, r.Tools, r.Dirs, r.AllowPing, r.Busy = now.Deadline, now.Tools, now.Dirs, now.AllowPing, now.Busy
	r.Continued, r.Settled, r.Reserved = r.Continued+1, c.settled, 0
	r.Resumed = c.f.r.Disk.Now().In(c.f.r.Zone)
	r.Shown = r.Resumed
	if previous.ID != r.ID && r.Persistent {
		r.Compaction = previous.Compaction
	}
	return nil
}

// Permit returns nil: goOn has checked the fire's permission.
func (c *continuation) Permit() error { return nil }

// Prepare records the answer. The gate and the skills ran in the first part.
func (c *continuation) Prepare(ctx context.Context, set *tools.Set, in prompt.Input) (prompt.Input, error) {
	if c.session == "" && !c.before.Persistent {
		in.Session = prompt.Lost
	}
	return c.f.foresee(in), set.Run.Event(ctx, runlog.Event{Type: runlog.Answered, Text: c.question.Answer, Reported: c.settled})
}

// Complete adds the job's subagent to the request.
func (c *continuation) Complete(r *engine.Request) error { return c.f.Complete(r) }

// Postpone leaves the run waiting with its answer. A limit is reported unless reservations of other runs caused it.
func (c *continuation) Postpone(ctx context.Context, run *runlog.Run, later *run.Later) error {
	run.Shown = c.before.Shown
	if !later.Limit.Passing {
		record := run.Record
		record.Error = later.Error()
		c.f.r.ReportRefusal(ctx, record, later.Refusal(), 0)
	}
	return nil
}

// Report is that of the fire.
func (c *continuation) Report(ctx context.Context, run *runlog.Run, cause error) {
	c.f.Report(ctx, run, cause)
}

// End is that of the fire.
func (c *continuation) End(ctx context.Context, set *tools.Set, cause error) {
	c.f.End(ctx, set, cause)
}
