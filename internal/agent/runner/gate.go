package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/changed"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// errGated: the job's gate found nothing to do.
var errGated = errors.New("held back by its gate")

// Bounds of what the owner's executables may do.
const (
	gateOutput  = 4000 // characters that are added to the prompt
	stopGrace   = 5 * time.Second
	afterLimit  = time.Minute
	bytesAChar  = 4
	gateNothing = 1 // exit status of a gate that finds nothing to do
)

// gate asks the job's gate whether to continue, and returns its output for the prompt.
func (f *fire) gate(ctx context.Context, set *tools.Set) (string, error) {
	j := f.job
	if j.Gate == "" {
		return "", nil
	}
	result, err := f.program(ctx, set, job.Program{Key: job.GateKey, Name: j.Gate}, process.Call{Limit: gateOutput * bytesAChar})
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

// runAfter commits the values that the job's gate found changed, if the outcome is ok, and starts the job's after executable. Neither
// changes the outcome.
func (f *fire) runAfter(ctx context.Context, set *tools.Set) {
	j, r := f.job, set.Run
	switch r.Outcome {
	case runlog.Refused, runlog.Paused, runlog.Gated:
		return
	case runlog.OK:
		f.r.warn(f.r.Changes.CommitRun(ctx, r.ID, changed.Job{Kind: r.Kind, ID: r.Job}))
	}
	if j.After == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, afterLimit)
	defer cancel()
	result, err := f.atEnd(ctx, set, job.Program{Key: job.AfterKey, Name: j.After}, r.Record, process.Call{})
	if err == nil && result.Status != 0 {
		err = fmt.Errorf("%s: %s", result.End, cmp.Or(strings.TrimSpace(result.Stderr), "it printed no reason"))
	}
	if err != nil {
		f.r.warn(fmt.Errorf("after %s: %w", j.After, err))
	}
}

// program runs an executable in gates/ for a run, in the data directory, sealed as the agent's commands are unless the job says otherwise.
// It executes a copy of the approved bytes, because a link in gates/ may lead to a place where others write. c sets its streams.
func (f *fire) program(ctx context.Context, set *tools.Set, p job.Program, c process.Call) (process.Result, error) {
	file, err := f.copied(set.Run.ID, p.Name)
	if err != nil {
		return process.Result{}, err
	}
	defer func() {
		f.r.warn(store.Remove(file))
		_ = os.Remove(filepath.Dir(file)) // fails while the copy of another one is there
	}()
	c.Argv, c.Env, c.Dir, c.Grace = []string{file}, f.r.envOf(set.Run), f.r.Home.Path(), stopGrace
	if set.Seal != nil && !slices.Contains(f.job.Unsealed, p.Key) {
		c.Env, c.Seal = set.Env, set.Seal.With(seal.Rules{Read: []string{file}})
	}
	result, err := process.Run(ctx, c)
	if err != nil && ctx.Err() == nil {
		err = errors.New(strings.ReplaceAll(err.Error(), file, f.r.Home.Gate(p.Name)))
	}
	result.Stderr = strings.ReplaceAll(result.Stderr, file, f.r.Home.Gate(p.Name))
	if err == nil && c.Seal != nil && strings.Contains(strings.ToLower(result.Stderr), "permission denied") {
		result.Stderr = strings.TrimRight(result.Stderr, "\n") + " (it is sealed: dirs opens a directory, and unsealed: [" + p.Key + "] runs it without the seal)\n"
	}
	return result, err
}

var errChanged = errors.New("not started, because it was changed during the run")

// copied makes a copy of an executable in the directory of the run, where no program of the run writes. An executable that differs from the
// approved one is an error.
func (f *fire) copied(run, name string) (file string, err error) {
	dir := f.r.Home.Run(run, "programs")
	if err := store.MkdirOwn(dir); err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	file = filepath.Join(dir, name)
	syscall.ForkLock.RLock() // a process that is being forked holds a copy of the descriptor until it executes its program: the file would be busy
	defer syscall.ForkLock.RUnlock()
	_ = os.Remove(file)                                                     // left by a process that was killed
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o500) //nolint:gosec // a program
	if err != nil {
		return "", err
	}
	sum, err := f.r.Approvals.CopyGate(name, out)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%s: %s", failed.Path, store.Cause(err))
	}
	err = errors.Join(err, out.Close())
	if err == nil && sum != f.permitted[name] {
		err = errChanged
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(file))
	}
	return file, nil
}

// atEnd runs program with a record on standard input.
func (f *fire) atEnd(ctx context.Context, set *tools.Set, p job.Program, record runlog.Record, c process.Call) (process.Result, error) {
	line, err := json.Marshal(record)
	if err != nil {
		return process.Result{}, err
	}
	c.Stdin = slices.Concat(line, []byte("\n"))
	return f.program(ctx, set, p, c)
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

// envOf returns the environment of the programs that a run starts. It puts the ollim commands in them under that run's rules.
func (r *Runner) envOf(run *runlog.Run) []string {
	env := append(append([]string{}, r.Host.Env...), "OLLIM_RUN="+run.ID, "OLLIM_JOB="+run.Job)
	if run.Scheduled != nil {
		env = append(env, "OLLIM_SLOT="+run.Scheduled.UTC().Format(time.RFC3339))
	}
	return env
}
