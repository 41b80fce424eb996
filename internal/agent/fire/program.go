package fire

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

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/seal"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/changed"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Limits of the owner's executables.
const (
	gateOutput  = 4000 // characters that are added to the prompt
	stopGrace   = 5 * time.Second
	afterLimit  = time.Minute
	bytesAChar  = 4
	gateNothing = 1 // exit status of a gate that finds nothing to do
)

// programs are the owner's executables that a job names, for one fire of it.
type programs struct {
	r         *run.Runner
	job       job.Job
	permitted map[string]string // digests of the executables that may start, by their names; nil: the run is not permitted
	retried   int               // retries of an earlier attempt of the reminder, which was cut off
}

// gate asks the job's gate whether to continue, and returns its output for the prompt.
func (p programs) gate(ctx context.Context, set *tools.Set) (string, error) {
	j := p.job
	if j.Gate == "" {
		return "", nil
	}
	result, err := p.program(ctx, set, job.Program{Key: job.GateKey, Name: j.Gate}, process.Call{Limit: gateOutput * bytesAChar})
	said := strings.TrimSpace(result.Stderr)
	switch {
	case err != nil:
		return "", fmt.Errorf("gate %s: %w", j.Gate, err)
	case result.Status == gateNothing && result.Stderr == "":
		return "", run.ErrGated
	case result.Status != 0:
		return "", fmt.Errorf("gate %s: %s: %s", j.Gate, result.End, cmp.Or(said, "it printed no reason"))
	}
	text := []rune(shown(string(result.Out)))
	if len(text) > gateOutput || result.Cut {
		return string(text[:min(len(text), gateOutput)]) + "\n[cut]", nil
	}
	return strings.TrimSpace(string(text)), nil
}

// after commits the values that the job's gate found changed, if the outcome is ok, and starts the job's after executable. Neither
// changes the outcome.
func (p programs) after(ctx context.Context, set *tools.Set) {
	j, r := p.job, set.Run
	switch r.Outcome {
	case runlog.Refused, runlog.Paused, runlog.Gated:
		return
	case runlog.OK:
		p.r.Warn(p.r.Changes.CommitRun(ctx, r.ID, changed.Job{Kind: r.Kind, ID: r.Job}))
	}
	if j.After == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, afterLimit)
	defer cancel()
	result, err := p.atEnd(ctx, set, job.Program{Key: job.AfterKey, Name: j.After}, r.Record, process.Call{})
	if err == nil && result.Status != 0 {
		err = fmt.Errorf("%s: %s", result.End, cmp.Or(strings.TrimSpace(result.Stderr), "it printed no reason"))
	}
	if err != nil {
		p.r.Warn(fmt.Errorf("after %s: %w", j.After, err))
	}
}

// program runs an executable in gates/ for a run, in the data directory, sealed as the agent's commands are unless the job says otherwise.
// It executes a copy of the approved bytes, because a link in gates/ may lead to a place where others write. c sets its streams.
func (p programs) program(ctx context.Context, set *tools.Set, what job.Program, c process.Call) (process.Result, error) {
	file, err := p.copied(set.Run.ID, what.Name)
	if err != nil {
		return process.Result{}, err
	}
	defer func() {
		_ = os.Remove(file)               // a copy that stays is replaced by the next, or removed with the run
		_ = os.Remove(filepath.Dir(file)) // an error means that the copy of another executable is there
	}()
	c.Argv, c.Env, c.Dir, c.Grace = []string{file}, p.r.EnvOf(set.Run), p.r.Home.Path(), stopGrace
	if set.World.Seal != nil && !slices.Contains(p.job.Unsealed, what.Key) {
		c.Env, c.Seal = set.World.Env, set.World.Seal.With(seal.Rules{Read: []string{file}})
	}
	result, err := process.Run(ctx, c)
	if err != nil && ctx.Err() == nil {
		err = errors.New(strings.ReplaceAll(err.Error(), file, p.r.Home.Gate(what.Name)))
	}
	result.Stderr = strings.ReplaceAll(result.Stderr, file, p.r.Home.Gate(what.Name))
	if c.Seal != nil && strings.Contains(strings.ToLower(result.Stderr), "permission denied") {
		result.Stderr = strings.TrimRight(result.Stderr, "\n") + " (it is sealed: dirs opens a directory, and unsealed: [" + what.Key + "] runs it without the seal)\n"
	}
	return result, err
}

var errChanged = errors.New("not started, because it was changed during the run")

// copied makes a copy of an executable in the directory of the run, where no program of the run can write. It is an error if the
// executable differs from the approved one.
func (p programs) copied(run, name string) (file string, err error) {
	dir := p.r.Home.Run(run, "programs")
	if err := store.MkdirAs(dir, store.Buffered); err != nil {
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
	sum, err := p.r.Approvals.CopyGate(name, out)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%s: %s", failed.Path, store.Cause(err))
	}
	err = errors.Join(err, out.Close())
	if err == nil && sum != p.permitted[name] {
		err = errChanged
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(file))
	}
	return file, nil
}

// atEnd runs program with a record on standard input.
func (p programs) atEnd(ctx context.Context, set *tools.Set, what job.Program, record runlog.Record, c process.Call) (process.Result, error) {
	line, _ := json.Marshal(record) // it has nothing that JSON cannot say
	c.Stdin = slices.Concat(line, []byte("\n"))
	return p.program(ctx, set, what, c)
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

// Exit status and bounds of the output of a verify executable.
const (
	verifyRefused = 1       // exit status of a verdict against the run
	verifyOutput  = 8 << 10 // bytes of its output, from the end, in which the reason is found
	verifyReason  = 500     // characters
)

// verify is the duty that one of the owner's executables accepts the run. As often as the job allows, the agent is told the reason of a
// refusal and continues. Each retry is counted in the events before it begins, so that none is repeated. The error is the reason of the
// last refusal.
func (p programs) verify(ctx context.Context, set *tools.Set, t *conversation.Turn) error {
	if p.job.Verify == "" {
		return nil
	}
	for {
		refusal, err := p.askVerify(ctx, set)
		if err != nil {
			return errors.Join(err, p.noteVerdict(ctx, t, err, 0))
		}
		standing, err := t.Run.Standing()
		if err != nil {
			return err
		}
		next := standing.Retries + p.retried + 1
		if refusal == nil || next > p.job.Retry {
			return errors.Join(refusal, p.noteVerdict(ctx, t, refusal, 0))
		}
		err = p.noteVerdict(ctx, t, refusal, next)
		if err == nil {
			err = t.Resume(ctx, prompt.NotVerified(refusal.Error(), next, p.job.Retry), false)
		}
		if err != nil {
			return errors.Join(refusal, err)
		}
		if err := run.Report(ctx, set, t); err != nil {
			return err
		}
	}
}

// noteVerdict records a verdict. An error because the run was stopped is no verdict.
func (p programs) noteVerdict(ctx context.Context, t *conversation.Turn, verdict error, retry int) error {
	e := runlog.Event{Type: runlog.Verified, Tool: p.job.Verify, IsError: verdict != nil, Count: retry}
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
func (p programs) askVerify(ctx context.Context, set *tools.Set) (refusal, err error) {
	name := p.job.Verify
	record, err := set.Run.SoFar()
	if err != nil {
		return nil, err
	}
	result, err := p.atEnd(ctx, set, job.Program{Key: job.VerifyKey, Name: name}, record, process.Call{Limit: verifyOutput, Last: true})
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
