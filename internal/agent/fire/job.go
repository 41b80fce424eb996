package fire

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/skill"
)

// spec returns the Spec of the job's file with the options of this fire.
func (f *fire) spec() run.Spec {
	j, o := f.job, f.options
	s := run.Spec{
		Identity: run.Identity{
			Subject: subject(j), Run: f.run, Scheduled: f.scheduled(), Held: f.held, Guard: f.guard, Queued: f.entry != nil, File: j.Source(),
		},
		Input: prompt.Input{Task: prompt.TaskOf(j), Piped: prompt.Piped{Text: o.Input, Questions: f.questions()}},
		Engine: run.Choice{
			Name: cmp.Or(o.Engine, j.Engine), Model: cmp.Or(o.Model, j.Model), Fallback: j.Fallback,
			Thinking: f.r.Settings.Main.ThinkingOr(j.Thinking), Moved: o.Moved, Needs: needsOf(j),
		},
		Policy: run.Rights{
			Dirs: j.Roots(f.r.Host.UserHome), Seal: sealOf(j), AllowPing: j.AllowPing, Update: j.Update, Owner: o.Owner, Deliver: !j.Background,
		},
		Limits:  run.Limits{Time: j.Timeout, Cost: j.MaxCost, Again: again(j, f.r.Disk.Now(), f.r.Zone)},
		Duties:  []run.Duty{run.Report, f.verify, turn.New(f.r).Forks.Enter},
		Origin:  f,
		Observe: o.Observe,
		Plain:   j.Plain,
	}
	if o.Model != "" {
		s.Identity.Typed = []string{runlog.TypedModel}
	}
	if f.entry != nil {
		s.Input.Payload = f.entry.Data
	}
	own, main, err := f.r.Patterns(j.Background)
	if err == nil {
		own, err = withJob(own, j, s.Policy.Dirs)
	}
	s.Policy.Tools, f.wrong = own, err
	f.in(&s, f.conversation(), main)
	return s
}

// subject returns what the record of a run says about its job.
func subject(j job.Job) runlog.Subject {
	return runlog.Subject{Kind: string(j.Kind), Job: j.ID, Name: j.Name(), Path: j.Path, Description: j.Description}
}

// sealOf returns what a job asks of the seal.
func sealOf(j job.Job) run.SealWish {
	return run.SealWish{On: j.Seal == job.SealOn, Offline: j.Network == job.NetworkNone, Open: j.Unsealed}
}

// in puts a Spec into a conversation. main are the tool patterns of the main conversation.
func (f *fire) in(s *run.Spec, c conversation.Conversation, main []string) {
	s.Conversation, s.Policy.System, s.Policy.Offered = c, "", nil
	if traits := c.Traits(); traits.Shared {
		s.Policy.System = prompt.SystemMain(turn.New(f.r).Profile())
		if traits.Foreground {
			s.Engine.Thinking, s.Engine.Model = f.r.Settings.Main.Thinking, cmp.Or(s.Engine.Model, f.r.Settings.Main.Model)
		} else { // the tools are those of main, so that the model's cache of main can be used
			s.Policy.Offered = main
		}
	}
}

// withJob adds the patterns that a job's fields stand for.
func withJob(own []string, j job.Job, dirs []policy.Root) ([]string, error) {
	own = append(own, j.AllowedTools...)
	for _, name := range j.Skills {
		own = append(own, policy.OfSkill(name))
	}
	if j.Subagent != "" {
		own = append(own, "Task("+j.Subagent+")")
	}
	for _, root := range dirs {
		below, err := policy.OfDir(root)
		if err != nil {
			return nil, err
		}
		own = append(own, below...)
	}
	return own, nil
}

// conversation returns the conversation that the job's file asks for.
func (f *fire) conversation() conversation.Conversation {
	switch f.job.Mode() {
	case job.Foreground:
		return &conversation.Main{Sessions: f.r.Sessions}
	case job.Persistent:
		return conversation.Routine{Sessions: f.r.Sessions, ID: f.job.ID, Shown: f.previous.ShownUntil(), Own: ownRun(f.r.Runs, f.job.ID, f.previous)}
	case job.Isolated:
		return conversation.Isolated{}
	}
	return conversation.Branch{Sessions: f.r.Sessions, Busy: f.r.Busy}
}

// ownRun returns the function that reports whether a run is one of a job. The record of its previous run need not be read again.
func ownRun(runs runlog.Book, job string, previous runlog.Record) func(run string) bool {
	return func(run string) bool {
		if run != "" && run == previous.ID {
			return true
		}
		r, err := runs.Load(run)
		return err == nil && r.Job == job
	}
}

// scheduled returns the time that the fire is for; zero if there is none.
func (f *fire) scheduled() time.Time {
	switch {
	case f.job.Kind == job.Reminder:
		return f.job.RunAt
	case f.entry != nil:
		return f.entry.Arrived
	}
	return f.claim.at
}

// again returns the time until the next slot of a routine that continues the same session; 0 if there is none.
func again(j job.Job, now time.Time, zone *time.Location) time.Duration {
	if j.Kind != job.Routine || !j.Enabled || j.Mode() != job.Persistent && j.Mode() != job.Forked {
		return 0
	}
	now = now.Truncate(time.Minute) // a slot's run begins a little later
	next, ok := j.Schedule.Next(now, j.Zone(zone))
	if !ok {
		return 0
	}
	return next.Sub(now)
}

// Begin completes the record with what belongs to the job.
func (f *fire) Begin(r *runlog.Record) error {
	r.MaxChain, r.ChainDepth = f.job.MaxChain, f.job.ChainDepth
	r.Shown, r.Compaction = f.previous.ShownUntil(), f.previous.Compaction
	if told := f.previous.ToldUntil(); told.Session == r.SessionBefore {
		r.ToldBefore = told
	}
	return nil
}

// Permit checks that the job may run as it is written.
func (f *fire) Permit() error {
	subject, err := f.permit()
	if err != nil {
		return err
	}
	f.permitted = map[string]string{}
	for _, p := range f.job.Programs() {
		f.permitted[p.Name] = subject.Gate(p.Name)
	}
	return nil
}

// permit returns what the owner has approved of the job, or a *run.Refusal.
func (f *fire) permit() (approval.Subject, error) {
	j := f.job
	if !j.Enabled {
		return approval.Subject{}, &run.Refusal{Kind: run.ErrPaused, Reason: "enabled: false in its file"}
	}
	if err := f.r.Paused(f.options.Owner); err != nil && (!j.Plain || (Pauses{f.r}).HoldsReminders()) {
		return approval.Subject{}, err
	}
	if f.wrong != nil && !j.Plain {
		return approval.Subject{}, f.wrong
	}
	for _, check := range []func(job.Job) error{(Rules{f.r}).CheckDirs, (Rules{f.r}).CheckTools, (Rules{f.r}).CheckPrograms} {
		if err := check(j); err != nil {
			return approval.Subject{}, err
		}
	}
	subject, err := Rules{f.r}.approvedAs(j)
	if err != nil {
		return subject, err
	}
	if name := cmp.Or(f.options.Engine, j.Engine, f.r.Settings.Engine); j.Subagent != "" && run.IsScript(name) {
		return subject, run.Refuse("subagent %s: %s: this engine has no subagents", j.Subagent, name)
	}
	return subject, nil
}

// Prepare claims a reminder's file or a webhook's entry, asks the job's gate, renders its skills, and adds the forward schedule to the input.
func (f *fire) Prepare(ctx context.Context, set *tools.Set, in prompt.Input) (prompt.Input, error) {
	if err := errors.Join(f.entry.take(), f.claimFile()); err != nil || f.job.Plain {
		return in, err
	}
	output, err := auditOf(f).ask(ctx, set, f.programs())
	if err != nil {
		return in, err
	}
	if err := f.skills(ctx, set); err != nil {
		return in, err
	}
	in.Gate = output
	return f.foresee(in), nil
}

// programs returns the executables of the job that are permitted so far.
func (f *fire) programs() programs { return programs{f.r, f.job, f.permitted, f.retried} }

// verify is the duty that the job's verify executable accepts the run.
func (f *fire) verify(ctx context.Context, set *tools.Set, t *conversation.Turn) error {
	return f.programs().verify(ctx, set, t)
}

// foresee adds the upcoming fires of other jobs to the input, if the agent may ping.
func (f *fire) foresee(in prompt.Input) prompt.Input {
	if in.Task.Background && in.Task.AllowPing {
		in.Forward = forecast.Around(f.all, f.r.Zone, in.Now, f.job.ID, f.r.Home.Relative)
		in.Forward.Refills = in.Budget.Refills(in.Forward.Last.Sub(in.Now))
	}
	return in
}

// skills renders the skills that the job names; a missing skill fails the job. A skill may be changed while the gate or the commands of an
// earlier skill run, so the approval is checked again before each skill.
func (f *fire) skills(ctx context.Context, set *tools.Set) error {
	for _, name := range f.job.Skills {
		err := set.Prepare(ctx, name, func() error { return Rules{f.r}.approved(f.job) })
		if errors.As(err, new(*plaintext.Unknown)) {
			return run.Refuse("%v", err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Complete adds the job's subagent to the request. The run may have waited for its session since the approval was checked, so the approval
// is checked again after the agent's file was read.
func (f *fire) Complete(r *engine.Request) error {
	if f.job.Subagent == "" {
		return nil
	}
	a, err := skill.LoadAgent(f.r.Home, f.job.Subagent)
	if errors.As(err, new(*plaintext.Unknown)) {
		return run.Refuse("there is no agents/%s.md", f.job.Subagent)
	}
	if err == nil {
		err = Rules{f.r}.approved(f.job)
	}
	r.Scope.Subagent = &engine.Subagent{Name: a.Name, Description: a.Description, Prompt: a.Prompt, Model: a.Model, Tools: a.Tools}
	return err
}

// Postpone releases the slot, the reminder's file and the webhook's entry for another attempt.
func (f *fire) Postpone(ctx context.Context, run *runlog.Run, later *run.Later) error {
	var err error
	if at := f.claim.at; !at.IsZero() {
		err = f.r.Slots.Release(f.job.ID, at, run.ID, later.Error())
	}
	return errors.Join(err, f.r.Jobs.GiveBack(f.job, run.Path), f.entry.giveBack(ctx, run, later))
}

// Report counts the job's failures and reports what the owner must know.
func (f *fire) Report(ctx context.Context, ended *runlog.Run, cause error) {
	switch ended.Outcome {
	case runlog.Failed, runlog.Timeout:
		if f.job.Kind != job.Reminder || ended.Unverified() || ended.Fault != "" { // see putAway
			Reports{f.r}.failure(ctx, ended.Record, map[runlog.Outcome]string{runlog.Failed: "failed", runlog.Timeout: "did not finish in time"}[ended.Outcome])
		}
	case runlog.Interrupted:
		if errors.Is(cause, run.ErrSilent) && f.job.Kind != job.Reminder { // a reminder is tried again
			Reports{f.r}.failure(ctx, ended.Record, "was cut off before it ended")
		}
	case runlog.Refused:
		f.r.ReportRefusal(ctx, ended.Record, cause, 1)
	}
}

// End takes the entry of the inbox, even if the run failed or was refused before it began. Unless the run waits for an answer, it also
// starts the job's after executable and puts a reminder away.
func (f *fire) End(ctx context.Context, set *tools.Set, cause error) {
	run := set.Run
	f.r.Warn(f.entry.take())
	f.forgetQuestions(ctx, run.Record)
	if run.Audit {
		f.r.Warn(auditOf(f).end(ctx, run))
	}
	if run.Outcome == runlog.Waiting {
		return
	}
	if f.permitted != nil {
		if f.job.Heartbeat != "" && run.Outcome == runlog.OK { // the monitor is called after the job's lock was released
			f.r.Warn(f.r.Heartbeats.Owe(ctx, f.job.ID, run.ID, f.job.Heartbeat))
		}
		f.programs().after(ctx, set)
	}
	ending{f.r, f.job}.putAway(ctx, run, cause)
}
