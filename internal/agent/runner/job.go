package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/confine"
	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
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
func (f *fire) spec() Spec {
	j, o := f.job, f.options
	s := Spec{
		Identity: identity{
			Subject: subject(j), Run: f.run, Scheduled: f.scheduled(), Guard: f.guard, Queued: f.entry != nil,
		},
		Input:  prompt.Input{Task: prompt.TaskOf(j), Piped: prompt.Piped{Text: o.Input, Questions: f.questions()}},
		Engine: choice{Name: cmp.Or(o.Engine, j.Engine), Model: cmp.Or(o.Model, j.Model), Thinking: j.Thinking, Moved: o.Moved},
		Policy: rights{
			Dirs: j.Roots(f.r.Host.UserHome), Seal: sealOf(j), AllowPing: j.AllowPing, Update: j.Update, Owner: o.Owner, Deliver: !j.Background,
		},
		Limits:  limits{Time: j.Timeout, Cost: j.MaxCost, Again: f.again()},
		Duties:  []duty{report, f.verify, enterFork},
		Origin:  f,
		Observe: o.Observe,
		Plain:   j.Plain,
	}
	if f.entry != nil {
		s.Input.Payload = f.entry.Data
	}
	own, main, err := f.r.patterns(j.Background)
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

// in puts a Spec into a conversation. main are the patterns of the main conversation.
func (f *fire) in(s *Spec, c conversation.Conversation, main []string) {
	s.Conversation, s.Policy.System, s.Policy.Offered = c, "", nil
	if traits := c.Traits(); traits.Shared {
		s.Policy.System = prompt.SystemMain(NewTurns(f.r).profile())
		if traits.Foreground {
			s.Engine.Thinking, s.Engine.Model = f.r.Settings.Main.Thinking, cmp.Or(s.Engine.Model, f.r.Settings.Main.Model)
		} else { // the same tools as in main, so that the model's cache of main is used
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
		return conversation.Routine{Sessions: f.r.Sessions, ID: f.job.ID, Shown: f.previous.ShownUntil(), Own: f.own}
	case job.Isolated:
		return conversation.Isolated{}
	}
	return conversation.Branch{Sessions: f.r.Sessions, Busy: f.r.Busy}
}

// own reports whether a run is one of the job.
func (f *fire) own(run string) bool {
	r, err := f.r.Runs.Load(run)
	return err == nil && r.Job == f.job.ID
}

// scheduled returns the time that the fire is for; zero if there is none.
func (f *fire) scheduled() time.Time {
	switch {
	case f.job.Kind == job.Reminder:
		return f.job.RunAt
	case f.entry != nil:
		return f.entry.Arrived
	}
	return f.slot
}

// again returns the time until the routine's next slot begins from the same session as this run; 0 if none does.
func (f *fire) again() time.Duration {
	j := f.job
	if j.Kind != job.Routine || !j.Enabled || j.Mode() != job.Persistent && j.Mode() != job.Forked {
		return 0
	}
	now := f.r.Disk.Now().Truncate(time.Minute) // a slot's run begins a little later
	next, ok := j.Schedule.Next(now, j.Zone(f.r.Zone))
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

// permit returns what the owner has approved of the job, or a *refusal.
func (f *fire) permit() (approval.Subject, error) {
	j := f.job
	if !j.Enabled {
		return approval.Subject{}, &refusal{kind: ErrPaused, reason: "enabled: false in its file"}
	}
	if err := f.r.paused(f.options.Owner); err != nil && (!j.Plain || (Pauses{f.r}).HoldsReminders()) {
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
	if name := cmp.Or(f.options.Engine, j.Engine, f.r.Settings.Engine); j.Subagent != "" && isScript(name) {
		return subject, refuse("subagent %s: %s: this engine has no subagents", j.Subagent, name)
	}
	return subject, nil
}

// CheckDirs returns an ErrRefused if a job's dirs lie in the data directory, where tool patterns say what may be used, or if they contain
// protected paths or lie in them. Links are resolved.
func (u Rules) CheckDirs(j job.Job) error {
	roots := j.Roots(u.r.Host.UserHome)
	for _, root := range roots {
		home, homeErr := policy.Resolve(string(u.r.Home))
		dir, err := policy.Resolve(root.Dir)
		if errors.Join(homeErr, err) != nil {
			continue // nothing can be reached through it
		}
		if _, ok := policy.Below(dir, home); ok {
			return refuse("dirs: %s is in the data directory: allowed-tools says what may be used there", root.Dir)
		}
	}
	if err := confine.CheckDirs(roots, confine.Protected(u.r.Home, u.r.Host.Secret)); err != nil {
		return refuse("dirs: %v", err)
	}
	return nil
}

// OnPath returns the directories of PATH in which a job may write.
func (u Rules) OnPath(j job.Job) []string {
	return confine.OnPath(u.r.Host.Env, j.Roots(u.r.Host.UserHome), u.r.caches())
}

// CheckTools returns an ErrRefused if the runs of a job are not sealed, but it has tool patterns that are in force only in a sealed run.
func (u Rules) CheckTools(j job.Job) error {
	for _, text := range j.AllowedTools {
		p, err := policy.Parse(text)
		if err != nil || p.Unsealed() == "" {
			continue
		}
		if _, why, err := u.Seals(j); err == nil && why != "" { // every start of the job reports the error
			return refuse("allowed-tools: %s is in force only in a sealed run: %s (%s)", text, p.Unsealed(), why)
		}
	}
	return nil
}

// CheckPrograms returns an ErrRefused if an executable of a job is a link to where the job may write.
func (u Rules) CheckPrograms(j job.Job) error {
	allow := j.AllowedTools
	if !j.Background {
		allow = slices.Concat(policy.DefaultMain(), allow)
	}
	list := confine.New(confine.Run{
		Home: u.r.Home, Root: string(u.r.Home), Dirs: j.Roots(u.r.Host.UserHome), Allow: allow, Protected: confine.Protected(u.r.Home, u.r.Host.Secret), Inside: true,
	})
	for _, p := range j.Programs() {
		real, err := policy.Resolve(u.r.Home.Gate(p.Name))
		if err == nil && list.Writable(real) {
			return refuse("%s: gates/%s is a link to %s, which the job may change: copy the file to gates", p.Key, p.Name, real)
		}
	}
	return nil
}

// approved returns a *refusal if the job may do more than every job may, and the owner has not approved it.
func (u Rules) approved(j job.Job) error {
	_, err := u.approvedAs(j)
	return err
}

// approvedAs is approved, and returns the subject that the owner has approved.
func (u Rules) approvedAs(j job.Job) (approval.Subject, error) {
	subject, widened, err := u.r.Approvals.Of(j)
	if unfit := (*approval.Unfit)(nil); errors.As(err, &unfit) {
		return subject, refuse("%v", unfit)
	}
	if err != nil || !widened {
		return subject, err
	}
	ok, err := u.r.Approvals.Approved(subject)
	if err != nil || ok {
		return subject, err
	}
	name := j.Name()
	return subject, &refusal{
		kind:   ErrRefused,
		reason: fmt.Sprintf("not approved: %s: ollim approve %s", strings.Join(subject.Widening(), ", "), name),
		notice: tools.Waiting(j.ID, j.Label(), name, subject.Widening()),
	}
}

// Prepare claims a reminder's file or a webhook's entry, asks the job's gate, renders its skills, and adds the forward schedule to the input.
func (f *fire) Prepare(ctx context.Context, set *tools.Set, in prompt.Input) (prompt.Input, error) {
	if err := errors.Join(f.takeEntry(), f.claim()); err != nil || f.job.Plain {
		return in, err
	}
	output, err := f.gate(ctx, set)
	if err != nil {
		return in, err
	}
	if err := f.skills(ctx, set); err != nil {
		return in, err
	}
	in.Gate = output
	return f.foresee(in), nil
}

// foresee adds the upcoming fires of other jobs to the input, if the agent may ping.
func (f *fire) foresee(in prompt.Input) prompt.Input {
	if in.Task.Background && in.Task.AllowPing {
		in.Forward = forecast.Around(f.all, f.r.Zone, in.Now, f.job.ID, func(path string) string {
			if rel, err := filepath.Rel(string(f.r.Home), path); err == nil && filepath.IsLocal(rel) {
				return rel
			}
			return path
		})
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
			return refuse("%v", err)
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
		return refuse("there is no agents/%s.md", f.job.Subagent)
	}
	if err == nil {
		err = Rules{f.r}.approved(f.job)
	}
	r.Scope.Subagent = &engine.Subagent{Name: a.Name, Description: a.Description, Prompt: a.Prompt, Model: a.Model, Tools: a.Tools}
	return err
}

// Postpone releases the slot, the reminder's file and the webhook's entry for another attempt.
func (f *fire) Postpone(ctx context.Context, run *runlog.Run, later *Later) error {
	var err error
	if !f.slot.IsZero() {
		err = f.r.Slots.Release(f.job.ID, f.slot, run.ID, later.Error())
	}
	return errors.Join(err, f.r.Jobs.GiveBack(f.job, run.Path), f.returnEntry(ctx, run, later))
}

// Report counts the job's failures and reports what the owner must know.
func (f *fire) Report(ctx context.Context, run *runlog.Run, cause error) {
	switch run.Outcome {
	case runlog.Failed, runlog.Timeout:
		if f.job.Kind != job.Reminder || run.Unverified() || run.Fault != "" { // see putAway
			Reports{f.r}.failure(ctx, run.Record, map[runlog.Outcome]string{runlog.Failed: "failed", runlog.Timeout: "did not finish in time"}[run.Outcome])
		}
	case runlog.Refused:
		f.r.reportRefusal(ctx, run.Record, cause, 1)
	}
}

// End takes the entry of the inbox, even if the run failed or was refused before it began. Unless the run waits for an answer, it also
// starts the job's after executable and puts a reminder away.
func (f *fire) End(ctx context.Context, set *tools.Set, cause error) {
	run := set.Run
	f.r.warn(f.takeEntry())
	f.forgetQuestions(ctx, run.Record)
	if run.Outcome == runlog.Waiting {
		return
	}
	if f.permitted != nil {
		if f.job.Heartbeat != "" && run.Outcome == runlog.OK { // called when the job's lock is free
			f.r.warn(f.r.Heartbeats.Owe(ctx, f.job.ID, run.ID, f.job.Heartbeat))
		}
		f.runAfter(ctx, set)
	}
	f.putAway(ctx, run, cause)
}

// HeldBack reports whether a fire cannot run before the owner does something: approve the job, or configure an engine. If tell is set, the
// owner is notified, once.
func (u Rules) HeldBack(ctx context.Context, j job.Job, tell bool) bool {
	err := u.heldBack(j)
	if err != nil && tell {
		u.r.reportRefusal(ctx, runlog.Record{Subject: subject(j), Error: plaintext.OneLine(err)}, err, 0)
	}
	return err != nil
}

// heldBack returns a *refusal or ErrNoEngine if the owner must do something before the job can run.
func (u Rules) heldBack(j job.Job) error {
	err := u.approved(j)
	if err == nil && !j.Plain && cmp.Or(j.Engine, u.r.Settings.Engine) == "" {
		err = ErrNoEngine
	}
	if refused := (*refusal)(nil); !errors.As(err, &refused) && !errors.Is(err, ErrNoEngine) {
		return nil // any other error may be gone when the job fires
	}
	return err
}
