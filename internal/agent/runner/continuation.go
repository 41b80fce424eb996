package runner

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
)

// continuation is the second part of a run that has asked the owner a question. It has what is left of the run's limits, and those
// permissions of the run that its job still has.
type continuation struct {
	*fire

	question question.Question
	before   runlog.Record
	settled  float64 // USD that the run has cost
	session  string  // as it is now
}

// goOn continues the fire's run. If the job is not permitted to run any more, the run keeps waiting.
func (f *fire) goOn(ctx context.Context, record runlog.Record, q question.Question) (runlog.Record, error) {
	if err := f.Permit(); err != nil {
		if outcomeOf(err) == runlog.Refused {
			record.Error = oneLine(err)
			f.reportRefusal(ctx, record, err)
		}
		return record, err
	}
	bill, err := f.Runs.Bill(record)
	if err != nil {
		return record, err
	}
	standing, err := f.Runs.Standing(f.run)
	if err != nil {
		return record, err
	}
	if cost := bill.Cost - record.Settled; record.Accounted && (cost > 0 || bill.Starts > 0) { // of a part that was cut off
		if err := f.Spend.Settle(ctx, record.Account(), max(cost, 0)); err != nil {
			return record, err
		}
	}
	c := &continuation{fire: f, question: q, before: record, settled: bill.Cost, session: standing.Session}
	done, err := f.Run(ctx, c.spec())
	if done.ID == "" {
		return record, err
	}
	f.settleSlot(done.Outcome)
	return done, err
}

// spec returns the Spec of the job's fire with the answer, in the session of the run.
func (c *continuation) spec() Spec {
	s, b := c.fire.spec(), c.before
	s.Identity.Run, s.Identity.Again, s.Origin = b.ID, true, c
	s.Input = prompt.Input{Task: s.Input.Task, Piped: prompt.Piped{Answer: &c.question}}
	s.Input.Task.Background, s.Input.Task.AllowPing = true, b.AllowPing && s.Policy.AllowPing
	s.Engine = choice{Name: b.Engine, Model: b.Model, Thinking: s.Engine.Thinking}
	s.Policy.Tools = slices.DeleteFunc(slices.Clone(b.Tools), func(p string) bool { return !slices.Contains(s.Policy.Tools, p) })
	s.Policy.Dirs = slices.DeleteFunc(slices.Clone(s.Policy.Dirs), func(d policy.Root) bool { return !slices.Contains(b.Dirs, dirOf(d)) })
	s.Policy.AllowPing, s.Policy.Deliver = s.Input.Task.AllowPing, false
	_, main, _ := c.patterns(true) // Permit has returned the error
	c.in(&s, c.conversation(), main)
	s.Limits.Time = cmp.Or(c.question.Left, s.Limits.Time)
	s.Limits.Cost = c.left(s.Limits.Cost)
	if perRun := c.Spend.Limits.PerRun; !isScript(b.Engine) && !math.IsInf(perRun, 1) {
		s.Limits.Cost = min(c.left(perRun), cmp.Or(s.Limits.Cost, perRun))
	}
	return s
}

// leastCost stands for a limit that is used up, in USD; 0 would mean no limit.
const leastCost = 1e-6

// left returns what is left of a limit of the run's cost; 0 is no limit.
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
		return conversation.Routine{Sessions: c.Sessions, ID: b.Job, Shown: c.previous.ShownUntil(), Own: c.own}
	}
	own := conversation.Conversation(conversation.Isolated{})
	if b.Shared {
		own = conversation.Branch{Sessions: c.Sessions, Busy: c.Busy}
	}
	return conversation.Resumed{Conversation: own, Session: c.session, Since: b.ShownUntil()}
}

// Begin replaces the record by that of the run, with the facts of this process.
func (c *continuation) Begin(r *runlog.Record) error {
	now, previous := *r, c.previous
	*r = c.before
	r.PID, r.PIDStart, r.PIDGroup, r.BootID, r.PIDNamespace = now.PID, now.PIDStart, now.PIDGroup, now.BootID, now.PIDNamespace
	r.Deadline, r.Tools, r.Dirs, r.AllowPing, r.Busy = now.Deadline, now.Tools, now.Dirs, now.AllowPing, now.Busy
	r.Continued, r.Settled, r.Reserved = r.Continued+1, c.settled, 0
	r.Resumed = c.Disk.Now().In(c.Zone)
	r.Shown = r.Resumed
	if previous.ID != r.ID && r.Persistent {
		r.Compaction = previous.Compaction
	}
	return nil
}

// Permit returns nil: goOn has asked the fire.
func (c *continuation) Permit() error { return nil }

// Prepare records the answer. The gate and the skills ran in the first part.
func (c *continuation) Prepare(ctx context.Context, run *runlog.Run, _ *tools.Set, in prompt.Input) (prompt.Input, error) {
	if c.session == "" && !c.before.Persistent {
		in.Session = prompt.Lost
	}
	return c.foresee(in), run.Event(ctx, runlog.Event{Type: runlog.Answered, Text: c.question.Answer, Reported: c.settled})
}

// Postpone leaves the run waiting with its answer. A limit is reported unless reservations of other runs caused it.
func (c *continuation) Postpone(ctx context.Context, run *runlog.Run, later *Later) error {
	run.Shown = c.before.Shown
	if !later.limit.Passing {
		record := run.Record
		record.Error = later.Error()
		c.reportRefusal(ctx, record, atLimit(later.limit))
	}
	return nil
}
