package tick

import (
	"context"
	"errors"
	"io/fs"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
)

// questions continues the runs whose question was answered, ends those whose question has expired, and sends a question whose run was
// killed before it sent it. Questions of runs that do not wait are removed.
func (m Minute) questions(ctx context.Context, files job.Set) error {
	all, err := m.Runner.Questions.List()
	if err != nil {
		return err
	}
	for _, q := range all {
		if j, known := files.ByID(q.Job); known && m.firer().Rules.Elsewhere(j) {
			continue
		}
		err = errors.Join(err, m.question(ctx, q))
	}
	return err
}

func (m Minute) question(ctx context.Context, q question.Question) error {
	r, err := m.Runner.Runs.Load(q.Run)
	damaged := (*runlog.Damaged)(nil)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &damaged): // a power failure took the record: the run cannot go on
		return m.Runner.Questions.Drop(ctx, q.Run)
	case err != nil:
		return err
	case !r.Done(): // it is in progress
		return nil
	case r.Outcome == runlog.Expired && m.within(*r.Finished, maxNote): // the agent of its job has not read that yet
		return nil
	case r.Outcome != runlog.Waiting:
		return m.Runner.Questions.Drop(ctx, q.Run)
	case m.goesOn(q):
		if err := m.Runner.Questions.Edit(ctx, q.Run, func(q *question.Question) error { q.Tried = m.now(); return nil }); err != nil {
			return err
		}
		return m.Continue(q.Run)
	case !q.Sent && q.Answer == "":
		return m.firer().Answers.AskAgain(ctx, q)
	}
	return nil
}

// goesOn reports whether to start a run that waits: its question is answered or has expired, no fire of its job is in progress, and it was
// not tried just before. During a pause only expired questions count.
func (m Minute) goesOn(q question.Question) bool {
	if m.within(q.Tried, retryAfter) || !lock.Free(m.Runner.Home.JobLock(q.Job)) {
		return false
	}
	if q.Expired(m.now()) {
		return true
	}
	paused, _, err := m.Runner.Spend.Paused()
	return q.Answer != "" && !paused && err == nil
}
