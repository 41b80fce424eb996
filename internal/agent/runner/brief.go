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

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/skill"
)

// prepare asks the job's gate, renders its skills, and gathers what the agent must know.
func (f *Firer) prepare(ctx context.Context, e errand, r *runlog.Run, tools *tools.Box) (prompt.Brief, error) {
	said, err := f.gate(ctx, e.job, r)
	if err != nil {
		return prompt.Brief{}, err
	}
	if err := f.skills(ctx, e.job, tools); err != nil {
		return prompt.Brief{}, err
	}
	b, err := f.brief(e, r.Record)
	b.Gate = said
	return b, err
}

// brief is what a run is told at its start, as far as nothing has to be done for it.
func (f *Firer) brief(e errand, r runlog.Record) (prompt.Brief, error) {
	j, now := e.job, f.Disk.Now().In(f.Zone)
	j.Dirs = r.Dirs // in full
	b := prompt.Brief{
		Job: j, Now: now, Busy: r.Busy && j.Background, Compaction: e.previous.Compaction, Input: e.options.Input, Fence: e.fence(),
		Tools: slices.DeleteFunc(slices.Clone(r.Tools), func(p string) bool { return strings.HasPrefix(p, "mcp__ollim__") }),
	}
	if r.Scheduled != nil && forecast.Late(*r.Scheduled, now) {
		b.Late = r.Scheduled.In(f.Zone)
	}
	if !j.Background || !j.AllowPing {
		return b, nil
	}
	var err error
	if b.Budget, err = f.Budget.Status(); err != nil {
		return b, err
	}
	b.Forward = forecast.Around(e.beside, f.Zone, now, j.ID, f.relative)
	b.Forward.Refills = b.Budget.Refills(b.Forward.Last.Sub(now))
	return b, nil
}

func (f *Firer) relative(path string) string {
	if rel, err := filepath.Rel(string(f.Home), path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// skills renders those that the job names. One that cannot be had stops the job: it was told to use it. The gate, and the
// commands of the skill before, take their time, in which somebody may change a skill: each is as approved when its turn comes.
func (f *Firer) skills(ctx context.Context, j job.Job, tools *tools.Box) error {
	for _, name := range j.Skills {
		err := tools.Prepare(ctx, name, func() error { return f.approved(j) })
		if errors.As(err, new(*skill.Unknown)) {
			return &barred{kind: ErrRefused, reason: err.Error()}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// patterns are the tool patterns in force for a job, and those of the main conversation. The error says what is wrong with
// tool-policy.yaml.
func (f *Firer) patterns(j job.Job) (own, main []string, err error) {
	if j.Kind == job.Ask {
		return append(policy.DefaultAsk(), j.AllowedTools...), nil, nil
	}
	extra, err := f.Approvals.Policy()
	if err != nil {
		return nil, nil, err
	}
	main = slices.Concat(policy.DefaultMain(), extra.Main)
	if !j.Background {
		own = slices.Clone(main)
	} else {
		own = policy.DefaultBackground()
		if extra.Override != nil {
			own = slices.Clone(extra.Override)
		}
		own = append(own, extra.Background...)
	}
	own = append(own, j.AllowedTools...)
	for _, name := range j.Skills {
		own = append(own, policy.OfSkill(name))
	}
	if j.Subagent != "" {
		own = append(own, "Task("+j.Subagent+")")
	}
	for _, root := range j.Roots(f.UserHome) {
		below, err := policy.OfDir(root)
		if err != nil {
			return nil, nil, err
		}
		own = append(own, below...)
	}
	return own, main, nil
}

// dirs are the job's folders in full, in the form of its record.
func (f *Firer) dirs(j job.Job) (dirs []string) {
	for _, root := range j.Roots(f.UserHome) {
		if root.Writable {
			root.Dir = "rw:" + root.Dir
		}
		dirs = append(dirs, root.Dir)
	}
	return dirs
}

func (f *Firer) request(e errand, r *runlog.Run, set *tools.Box, granted float64) (engine.Request, error) {
	j := e.job
	lists := [][]string{r.Tools}
	if j.Mode() == job.Forked { // offered as in main, so that the model's cache of it holds; what may not be used is refused
		_, main, err := f.patterns(j)
		if err != nil {
			return engine.Request{}, err
		}
		lists = append(lists, main)
	}
	request := engine.Request{
		Run: engine.Run{ID: r.ID},
		Input: engine.Input{
			System: prompt.System(j.Mode(), f.profile()), SystemOnly: j.Mode() != job.Foreground && j.Mode() != job.Forked,
			Delta: e.options.Delta, Awaited: j.Kind == job.Ask || j.Kind == kindChat,
		},
		Session: engine.Session{Discard: e.question.Discard, NextIn: f.again(j)},
		Model:   engine.Model{Name: r.Model, Thinking: j.Thinking},
		Limits:  engine.Limits{MaxCost: granted, Reserved: r.Reserved, Raise: f.raise(r), MaxTurns: e.question.MaxTurns},
		Scope: engine.Scope{
			Root: cmp.Or(r.Root, string(f.Home)), Dirs: j.Roots(f.UserHome), Protected: set.Protected(),
			BuiltIns: tools.BuiltIns(lists...), Allow: r.Tools,
		},
	}
	if r.Scheduled != nil {
		request.Run.Slot = *r.Scheduled
	}
	if j.Kind == job.Ask {
		request.Session.Follow, request.Limits.Patience = e.follow, askPatience
	}
	for _, guard := range []*lock.Guard{e.running, e.guard} {
		if guard != nil { // a preview has none
			request.Run.Locks = append(request.Run.Locks, guard.File())
		}
	}
	var err error
	if j.Subagent != "" {
		request.Scope.Subagent, err = f.subagent(j)
	}
	return request, err
}

// again returns the time until a routine's schedule goes on from where this run begins; 0 if it does not.
func (f *Firer) again(j job.Job) time.Duration {
	if j.Kind != job.Routine || !j.Enabled || j.Mode() != job.Persistent && j.Mode() != job.Forked {
		return 0
	}
	now := f.Disk.Now().Truncate(time.Minute) // a slot's run begins a little later
	next, ok := j.Schedule.Next(now, j.Zone(f.Zone))
	if !ok {
		return 0
	}
	return next.Sub(now)
}

// subagent reads the job's subagent. The session may have been waited for since the approval was checked, so that is asked
// for once more, behind the reading.
func (f *Firer) subagent(j job.Job) (*engine.Subagent, error) {
	a, err := skill.LoadAgent(f.Home, j.Subagent)
	if errors.As(err, new(*skill.Unknown)) {
		return nil, &barred{kind: ErrRefused, reason: fmt.Sprintf("there is no agents/%s.md", j.Subagent)}
	}
	if err == nil {
		err = f.approved(j)
	}
	return &engine.Subagent{Name: a.Name, Description: a.Description, Prompt: a.Prompt, Model: a.Model, Tools: a.Tools}, err
}

func (f *Firer) tools(r *runlog.Run) *tools.Box {
	return &tools.Box{
		Home: f.Home, Disk: f.Disk, Zone: f.Zone, Random: f.Random, Secret: f.Secret, Env: f.inRun(r),
		Run: r, Jobs: f.Jobs, Sessions: f.Sessions, Updates: f.Updates, Told: f.Told, Budget: f.Budget, Approvals: f.Approvals,
		Post: f.Post, Busy: f.room().Busy, SetNames: f.SetNames,
	}
}

// Tools is the toolbox of a run that another process has begun. What it sends does not go to our terminal, which belongs to a
// protocol.
func (f *Firer) Tools(r *runlog.Run) *tools.Box {
	box := f.tools(r)
	box.Post.Terminal = nil
	return box
}
