package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	result, err := f.program(ctx, r, j.Gate, process.Call{Limit: gateOutput * bytesAChar})
	said := strings.TrimSpace(result.Stderr)
	switch {
	case err != nil:
		return "", fmt.Errorf("gate %s: %w", j.Gate, err)
	case result.Status == gateNothing && result.Stderr == "":
		return "", errGated
	case result.Status != 0:
		return "", fmt.Errorf("gate %s: %s: %s", j.Gate, result.End, cmp.Or(said, "it printed no reason"))
	}
	text := []rune(shown(string(result.Out)))
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
	ctx, cancel := context.WithTimeout(ctx, afterLimit)
	defer cancel()
	result, err := f.atEnd(ctx, r, j.After, r.Record, process.Call{})
	if err == nil && result.Status != 0 {
		err = fmt.Errorf("%s: %s", result.End, cmp.Or(strings.TrimSpace(result.Stderr), "it printed no reason"))
	}
	if err != nil {
		f.warn(fmt.Errorf("after %s: %w", j.After, err))
	}
}

// program runs an executable in gates/ for a run, in the data directory. c says what becomes of its streams.
func (f *fire) program(ctx context.Context, r *runlog.Run, name string, c process.Call) (process.Result, error) {
	c.Argv, c.Env, c.Dir, c.Grace = []string{f.Home.Gate(name)}, f.envOf(r), f.Home.Path(), stopGrace
	return process.Run(ctx, c)
}

var errChanged = errors.New("not started, because it was changed during the run")

// atEnd is program with a record on standard input, for an executable that is still as it was when the run was permitted: a link in
// gates/ may lead to where the agent writes.
func (f *fire) atEnd(ctx context.Context, r *runlog.Run, name string, record runlog.Record, c process.Call) (process.Result, error) {
	if f.fingerprint(name) != f.permitted[name] {
		return process.Result{}, errChanged
	}
	line, err := json.Marshal(record)
	if err != nil {
		return process.Result{}, err
	}
	c.Stdin = slices.Concat(line, []byte("\n"))
	return f.program(ctx, r, name, c)
}

// shown returns what an executable printed without control characters.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
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
