package fire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/confine"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/skill"
	"github.com/ollim/ollim/internal/state/slot"
)

// Rules decides which jobs may run.
type Rules struct{ r *run.Runner }

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
			return run.Refuse("dirs: %s is in the data directory: allowed-tools says what may be used there", root.Dir)
		}
	}
	if err := confine.CheckDirs(roots, confine.Protected(u.r.Home, u.r.Host.Secret)); err != nil {
		return run.Refuse("dirs: %v", err)
	}
	return nil
}

// OnPath returns the directories of PATH in which a job may write.
func (u Rules) OnPath(j job.Job) []string {
	return confine.OnPath(u.r.Host.Env, j.Roots(u.r.Host.UserHome), u.r.Host.Sealing.Caches())
}

// CheckTools returns an ErrRefused if the runs of a job are not sealed, but it has tool patterns that are in force only in a sealed run.
func (u Rules) CheckTools(j job.Job) error {
	for _, text := range j.AllowedTools {
		p, err := policy.Parse(text)
		if err != nil || p.Unsealed() == "" {
			continue
		}
		if _, why, err := u.Seals(j); err == nil && why != "" { // every start of the job reports the error
			return run.Refuse("allowed-tools: %s is in force only in a sealed run: %s (%s)", text, p.Unsealed(), why)
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
			return run.Refuse("%s: gates/%s is a link to %s, which the job may change: copy the file to gates", p.Key, p.Name, real)
		}
	}
	return nil
}

// Seals returns the version of Landlock that seals the runs of a job, or why they are not sealed. The error says why the job is refused.
func (u Rules) Seals(j job.Job) (abi int, why string, err error) {
	return u.r.Host.Sealing.Support(j.Seal == job.SealOn)
}

// approved returns a *run.Refusal if the job may do more than every job may, and the owner has not approved it.
func (u Rules) approved(j job.Job) error {
	_, err := u.approvedAs(j)
	return err
}

// approvedAs is approved, and returns the subject that the owner has approved.
func (u Rules) approvedAs(j job.Job) (approval.Subject, error) {
	subject, widened, err := u.r.Approvals.Of(j)
	if unfit := (*approval.Unfit)(nil); errors.As(err, &unfit) {
		return subject, run.Refuse("%v", unfit)
	}
	if err != nil || !widened {
		return subject, err
	}
	ok, err := u.r.Approvals.Approved(subject)
	if err != nil || ok {
		return subject, err
	}
	name := j.Name()
	return subject, &run.Refusal{
		Kind:   run.ErrRefused,
		Reason: fmt.Sprintf("not approved: %s: ollim approve %s", strings.Join(subject.Widening(), ", "), name),
		Notice: tools.Waiting(j.ID, j.Label(), name, subject.Widening()),
	}
}

// HeldBack reports whether a fire cannot run before the owner does something: approve the job, or configure an engine. If tell is set, the
// owner is notified, once.
func (u Rules) HeldBack(ctx context.Context, j job.Job, tell bool) bool {
	err := u.heldBack(j)
	if err != nil && tell {
		u.r.ReportRefusal(ctx, runlog.Record{Subject: subject(j), Error: plaintext.OneLine(err)}, err, 0)
	}
	return err != nil
}

// heldBack returns a *run.Refusal or run.ErrNoEngine if the owner must do something before the job can run.
func (u Rules) heldBack(j job.Job) error {
	err := u.approved(j)
	if err == nil && !j.Plain && cmp.Or(j.Engine, u.r.Settings.Engine) == "" {
		err = run.ErrNoEngine
	}
	if refused := (*run.Refusal)(nil); !errors.As(err, &refused) && !errors.Is(err, run.ErrNoEngine) {
		return nil // any other error may be gone when the job fires
	}
	return err
}

// Elsewhere reports whether this machine leaves a job to another one.
func (u Rules) Elsewhere(j job.Job) bool { return process.Elsewhere(j.Host, u.r.Host.Name) }

// bound returns what a fire of a job on the wrong machine ends with: nothing is due for a timer, a person is refused.
func (u Rules) bound(j job.Job, trigger Trigger) error {
	switch {
	case !u.Elsewhere(j):
		return nil
	case trigger.Scheduled, trigger.Cron != nil && trigger.Cron():
		return slot.ErrNone
	}
	return run.Refuse("host: %s runs it, and this machine is %s: run `ollim fire %s` there", j.Host, u.r.Host.Name, j.Name())
}

// fit returns why a job may not run as it is written, as far as this shows before it fires.
func (u Rules) fit(j job.Job) error {
	for _, check := range []func(job.Job) error{u.CheckDirs, u.CheckTools, u.CheckPrograms, u.heldBack} {
		if err := check(j); err != nil {
			return err
		}
	}
	if _, _, err := u.r.Patterns(j.Background); err != nil {
		return err
	}
	return u.CheckSkills(j)
}

// CheckSkills returns why the job cannot have a skill or the subagent that it names.
func (u Rules) CheckSkills(j job.Job) error {
	for _, name := range j.Skills {
		if _, err := u.r.Skills.Find(name); err != nil {
			return err
		}
	}
	if j.Subagent == "" {
		return nil
	}
	if name := cmp.Or(j.Engine, u.r.Settings.Engine); run.IsScript(name) {
		return run.Refuse("subagent %s: %s: this engine has no subagents", j.Subagent, name)
	}
	_, err := skill.LoadAgent(u.r.Home, j.Subagent)
	return err
}
