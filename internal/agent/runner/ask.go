package runner

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Question is one question at a shell.
type Question struct {
	Text     string
	Input    string   // that was piped in
	Root     string   // where it is asked; absolute
	Session  string   // to continue; "" begins one
	Branch   bool     // branch Session instead: it is not a question's
	Tools    []string // patterns of tools that it may use besides those that only look
	MaxTurns int      // 0 is the engine's limit
	MaxCost  float64  // USD; 0 is no limit
	Discard  bool     // keep no transcript
}

// askPatience is how long a question waits for a service that refuses for now, in all: somebody waits for the answer.
const askPatience = 2 * time.Minute

// Ask answers a question at a shell: no job, no part in the main conversation, a session of its own.
func (f *Firer) Ask(ctx context.Context, q Question, o Options) (runlog.Record, error) {
	j := job.New(job.Ask)
	j.ID, j.Path, j.Body, j.Timeout, j.Thinking = "ask", q.Root, q.Text, turnLimit, ""
	j.AllowedTools, j.MaxCost, j.Update, j.AllowPing = q.Tools, q.MaxCost, job.Blocked, false
	o.Input = q.Input
	follow := !q.Branch
	q.Branch = q.Branch || q.Discard && q.Session != "" // what is not kept must not stand in what is
	id, err := runlog.NewID(f.Disk.Now(), f.Random)
	if err != nil {
		return runlog.Record{}, err
	}
	return f.run(ctx, errand{id: id, job: j, options: o, question: q, follow: follow})
}

// fence sets off what was piped into a question: the run's id holds what nobody could know before.
func (e errand) fence() string {
	if e.job.Kind != job.Ask {
		return ""
	}
	return "----- " + e.id
}

// engine makes the run's engine. A question's conversation is kept as a transcript whatever engine holds it.
func (f *Firer) engine(e errand, name string) (engine.Engine, error) {
	made, err := f.Engines(name)
	if err != nil || e.job.Kind != job.Ask || e.question.Discard || name == engine.Native {
		return made, err
	}
	return &scribe{Engine: made, f: f, name: name}, nil
}
