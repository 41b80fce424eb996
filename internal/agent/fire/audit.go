package fire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/state/gate"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// gateAudit audits the gate of a job with gate-audit. The job's lock is held. What an audit found is noted when its run ends. If the run's
// process was killed before, the next fire notes it from the events of the run.
type gateAudit struct {
	r      *run.Runner
	job    job.Job
	digest string // of the gate that may start
}

func auditOf(f *fire) gateAudit { return gateAudit{f.r, f.job, f.permitted[f.job.Gate]} }

// ask asks the job's gate whether to continue, and returns its output for the prompt. Each N-th time that the gate says no the run
// continues all the same, and so does every run while the gate is off.
func (a gateAudit) ask(ctx context.Context, set *tools.Set, p programs) (string, error) {
	known, err := a.state(ctx)
	if err != nil {
		return "", err
	}
	output, err := p.gate(ctx, set)
	switch {
	case err == nil || a.job.GateAudit == 0:
		return output, err
	case known.Off != "" && ctx.Err() == nil:
		if !errors.Is(err, run.ErrGated) {
			a.r.Warn(err) // a gate that is off keeps no run from its work
		}
		return "", set.Run.Update(func(r *runlog.Record) { r.GateOff = true })
	case !errors.Is(err, run.ErrGated):
		return "", err
	}
	audits, closeErr := a.r.Gates.Close(ctx, a.job.ID, a.digest, set.Run.ID, a.job.GateAudit)
	if closeErr != nil || !audits {
		return "", errors.Join(closeErr, err)
	}
	return "", set.Run.Update(func(r *runlog.Record) { r.Audit = true })
}

// state returns what is known about the gate, and notes first what an audit found whose process was killed.
func (a gateAudit) state(ctx context.Context) (known gate.Gate, err error) {
	if a.job.GateAudit == 0 {
		return known, a.tell(ctx, known)
	}
	known, err = a.r.Gates.Of(a.job.ID, a.digest)
	if err == nil && known.Audit != "" {
		earlier, loadErr := a.r.Runs.At(known.Audit)
		if loadErr != nil && !errors.Is(loadErr, fs.ErrNotExist) {
			return known, loadErr
		}
		if err = a.note(ctx, known.Audit, earlier); err == nil {
			known, err = a.r.Gates.Of(a.job.ID, a.digest)
		}
	}
	if err == nil {
		a.r.Warn(a.tell(ctx, known))
	}
	return known, err
}

// end notes what a run that audits the gate has found.
func (a gateAudit) end(ctx context.Context, audits *runlog.Run) error {
	err := a.note(ctx, audits.ID, audits)
	known, readErr := a.r.Gates.Of(a.job.ID, a.digest)
	if readErr == nil {
		readErr = a.tell(ctx, known)
	}
	return errors.Join(err, readErr)
}

// note notes what a run has found; nil: its record is gone.
func (a gateAudit) note(ctx context.Context, id string, audits *runlog.Run) error {
	told, passed := "", false
	if audits != nil {
		s, err := audits.Standing()
		if err != nil {
			return err
		}
		refused, err := audits.Refused()
		switch {
		case err != nil:
			return err
		case s.Question != "":
			told = "asked you something"
		case s.Pings > 0:
			told = "pinged you"
		case s.Reports > 0:
			told = "reported"
		case audits.AllowPing && slices.ContainsFunc(refused, tools.Sends): // as when no ping is left
			told = "wanted to tell you something, which was refused"
		}
		passed = audits.Outcome == runlog.OK || audits.Outcome == runlog.Unreported
	}
	return a.r.Gates.End(ctx, a.job.ID, id, told, passed)
}

// tell notifies the owner that the gate is off. There is one message, however often the cause is opened, and none when it is over: the
// owner has changed the gate or the job.
func (a gateAudit) tell(ctx context.Context, known gate.Gate) error {
	c := notify.Cause{Kind: notify.Gate, Subject: a.job.ID, Name: "The gate of " + a.job.Label(), Run: known.Off}
	if known.Off == "" {
		return a.r.Notify().Drop(ctx, c.Key())
	}
	c.Text = fmt.Sprintf("The gate of %s is off: it would have skipped the run %s, which %s. Every fire asks the model now", a.job.Label(), known.Off, known.Told)
	c.Remedy = fmt.Sprintf("`ollim run log %s` shows what happened; `ollim distil %s` writes a new gate, or change gates/%s and approve it: `ollim approve %s`",
		known.Off, a.job.Name(), a.job.Gate, a.job.Name())
	c.Jobs = []notify.Affected{{ID: a.job.ID, Name: a.job.Label()}}
	_, err := a.r.Notify().Open(ctx, c)
	return err
}
