package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Exit status and bounds of the output of a verify executable.
const (
	verifyRefused = 1       // exit status of a verdict against the run
	verifyOutput  = 8 << 10 // bytes of its output, from the end, in which the reason is found
	verifyReason  = 500     // characters
)

// verify is the duty that an executable of the owner's accepts the run. As often as the job allows, the agent is told why it refused and
// continues. Each retry is counted in the events before it begins, so that none is made twice. The error is the reason of the last refusal.
func (f *fire) verify(ctx context.Context, w *work, t *conversation.Turn) error {
	if f.job.Verify == "" {
		return nil
	}
	for {
		refusal, err := f.askVerify(ctx, w.tools)
		if err != nil {
			return errors.Join(err, f.noteVerdict(ctx, t, err, 0))
		}
		standing, err := t.Run.Standing()
		if err != nil {
			return err
		}
		next := standing.Retries + f.retried + 1
		if refusal == nil || next > f.job.Retry {
			return errors.Join(refusal, f.noteVerdict(ctx, t, refusal, 0))
		}
		err = f.noteVerdict(ctx, t, refusal, next)
		if err == nil {
			err = t.Resume(ctx, prompt.NotVerified(refusal.Error(), next, f.job.Retry), false)
		}
		if err != nil {
			return errors.Join(refusal, err)
		}
		if err := report(ctx, w, t); err != nil {
			return err
		}
	}
}

// noteVerdict records a verdict. An error because the run was stopped is no verdict.
func (f *fire) noteVerdict(ctx context.Context, t *conversation.Turn, verdict error, retry int) error {
	e := runlog.Event{Type: runlog.Verified, Tool: f.job.Verify, IsError: verdict != nil, Count: retry}
	if verdict != nil {
		e.Text = plaintext.OneLine(verdict)
	}
	if e.IsError && ctx.Err() != nil {
		return nil //nolint:nilerr // the stop is the reason for the end of the run
	}
	if t.Observe != nil {
		t.Observe(e)
	}
	return t.Run.Event(context.WithoutCancel(ctx), e)
}

// askVerify runs the executable. refusal is its reason to refuse the run; an error means that it gave no verdict.
func (f *fire) askVerify(ctx context.Context, set *tools.Set) (refusal, err error) {
	name := f.job.Verify
	record, err := set.Run.SoFar()
	if err != nil {
		return nil, err
	}
	result, err := f.atEnd(ctx, set, job.Program{Key: job.VerifyKey, Name: name}, record, process.Call{Limit: verifyOutput, Last: true})
	switch {
	case ctx.Err() != nil:
		return nil, cmp.Or(err, context.Cause(ctx))
	case err != nil:
		return nil, fmt.Errorf("verify is broken: %s: %w", name, err)
	case result.Status == 0:
		return nil, nil
	case result.Status == verifyRefused:
		silent := fmt.Sprintf("verify %s: %s: it printed no reason", name, result.End)
		return errors.New(cmp.Or(lastLine(string(result.Out)), lastLine(result.Stderr), silent)), nil
	}
	return nil, fmt.Errorf("verify is broken: %s: %s: %s", name, result.End, cmp.Or(lastLine(result.Stderr), lastLine(string(result.Out)), "it printed no reason"))
}

// lastLine returns the last line of a text that is not blank, without control characters.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(shown(text)), "\n")
	return plaintext.Short(strings.TrimSpace(lines[len(lines)-1]), verifyReason)
}

var errUnreported = errors.New("the agent did not report")

// report is the duty of a background run to report to the main conversation, as its record requires. An agent that has not reported is
// reminded. If it still does not report and its job always requires a report, an update says so.
func report(ctx context.Context, w *work, t *conversation.Turn) error {
	var dear error
	for dear == nil {
		nudge, err := t.Tools.Nudge(ctx)
		if err != nil {
			return err
		}
		if nudge == "" {
			break
		}
		if err = t.Resume(ctx, nudge, true); errors.Is(err, engine.ErrMaxCost) {
			dear = err // only the reminder failed: the work is done
		} else if err != nil {
			return err
		}
	}
	if err := waits(t.Run); err != nil { // the agent asked a question in its last turn
		return err
	}
	standing, err := t.Run.Standing()
	if err != nil || !t.Run.Owes(standing) {
		return err
	}
	if t.Run.Record.Update == string(job.Always) {
		err = w.r.Updates.Add(ctx, unreported(t.Run.Label()), t.Run.ID)
	}
	return errors.Join(errUnreported, dear, err)
}
