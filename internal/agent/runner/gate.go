package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// errGated: the job's gate found nothing to do.
var errGated = errors.New("held back by its gate")

// Bounds of what the owner's executables may do.
const (
	gateOutput  = 4000 // characters that join the prompt
	stopGrace   = 5 * time.Second
	afterLimit  = time.Minute
	bytesAChar  = 4
	gateNothing = 1 // its exit status when there is nothing to do
)

// gate asks the job's gate whether to go on, and returns what it has to say to the agent.
func (f *fire) gate(ctx context.Context, r *runlog.Run) (string, error) {
	j := f.job
	if j.Gate == "" {
		return "", nil
	}
	result, err := process.Run(ctx, process.Call{
		Argv: []string{f.Home.Gate(j.Gate)}, Env: f.envOf(r), Dir: f.Home.Path(), Limit: gateOutput * bytesAChar, Grace: stopGrace,
	})
	said := strings.TrimSpace(result.Stderr)
	switch {
	case err != nil:
		return "", fmt.Errorf("gate %s: %w", j.Gate, err)
	case result.Status == gateNothing && result.Stderr == "":
		return "", errGated
	case result.Status != 0:
		return "", fmt.Errorf("gate %s: %s: %s", j.Gate, result.End, cmp.Or(said, "it printed no reason"))
	}
	text := []rune(strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(result.Out), "\ufffd")))
	if len(text) > gateOutput || result.Cut {
		return string(text[:min(len(text), gateOutput)]) + "\n[cut]", nil
	}
	return strings.TrimSpace(string(text)), nil
}

// runAfter commits what the job's gate found changed, when all went well, and starts what the owner wants at the end. Neither
// changes how the run ended.
func (f *fire) runAfter(ctx context.Context, r *runlog.Run) {
	j := f.job
	switch r.Outcome {
	case runlog.Refused, runlog.Paused, runlog.Gated:
		return
	case runlog.OK:
		f.warn(f.Changes.CommitRun(ctx, r.ID))
	}
	if j.After == "" {
		return
	}
	if f.fingerprint(j.After) != f.after { // a link in gates/ may lead to where the agent writes
		f.warn(fmt.Errorf("after %s: not started, because it was changed during the run", j.After))
		return
	}
	record, err := json.Marshal(r.Record)
	if err != nil {
		f.warn(err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, afterLimit)
	defer cancel()
	result, err := process.Run(ctx, process.Call{
		Argv: []string{f.Home.Gate(j.After)}, Env: f.envOf(r), Dir: f.Home.Path(), Grace: stopGrace,
		Stdin: append(record, '\n'),
	})
	if err == nil && result.Status != 0 {
		err = fmt.Errorf("%s: %s", result.End, cmp.Or(strings.TrimSpace(result.Stderr), "it printed no reason"))
	}
	if err != nil {
		f.warn(fmt.Errorf("after %s: %w", j.After, err))
	}
}

// fingerprint changes when an executable of the owner's does.
func (r *Runner) fingerprint(gate string) string {
	s, _, err := r.Approvals.Of(job.Job{After: gate})
	if err != nil {
		return err.Error()
	}
	return s.Digest()
}

// envOf is the environment of what is started in a run: an ollim in it is under that run's rules.
func (r *Runner) envOf(run *runlog.Run) []string {
	env := append(append([]string{}, r.Env...), "OLLIM_RUN="+run.ID, "OLLIM_JOB="+run.Job)
	if run.Scheduled != nil {
		env = append(env, "OLLIM_SLOT="+run.Scheduled.UTC().Format(time.RFC3339))
	}
	return env
}
