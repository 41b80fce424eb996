// Package command has what the engines share that run a command of others: where its files are, what of its output is kept, and how the
// processes that it leaves are ended.
package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/seal"
)

// Followed returns an absolute path with its links resolved, up to the first part that does not exist.
func Followed(path string) string {
	rest := ""
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
	return path
}

// EndAll kills the processes that have a variable, and waits for their end: those of a fire that was just killed may not have ended yet.
func EndAll(ctx context.Context, entry string) error {
	for pause := time.Millisecond; len(process.Carrying(entry)) > 0; pause = min(2*pause, 100*time.Millisecond) {
		process.KillAll(entry)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
	return nil
}

// Files returns the files of a command that it reads: its program, and the packages that npm installed with it.
func Files(command string) []string {
	file := Followed(command)
	// node_modules beside the file, for a script that starts the program there
	files := []string{file, filepath.Join(filepath.Dir(file), "node_modules")}
	if i := strings.LastIndex(file, "/node_modules/"); i >= 0 {
		files = append(files, file[:i]+"/node_modules")
	}
	return files
}

// probe is a file that Try makes.
const probe = ".ollim-probe"

// Try returns an error if a sealed process of a command cannot write to directories. In that case the command might print nothing, or keep
// no session, and exit 0.
func Try(ctx context.Context, name string, env []string, s *seal.Seal, dirs ...string) error {
	argv := append([]string{"/bin/sh", "-c", `for d; do : >"$d/` + probe + `" || exit; done`, "sh"}, dirs...)
	result, err := process.Run(ctx, process.Call{Argv: argv, Env: env, Dir: "/", Seal: s})
	if err == nil {
		err = result.Failure()
	}
	for _, dir := range dirs {
		_ = os.Remove(filepath.Join(dir, probe))
	}
	if err != nil {
		return fmt.Errorf("%s cannot write its temporary files and its session under the seal: %w", name, err)
	}
	return nil
}

// Least is the smallest budget, in USD, that a command is given.
const Least = 0.0001

// Reserve reserves what a command may spend. It cannot ask for more while it runs, so the reservation leaves enough for other runs and is
// the limit of the command.
func Reserve(ctx context.Context, r engine.Request) (engine.Request, error) {
	if r.Limits.MaxCost == 0 || r.Limits.Raise == nil {
		return r, nil
	}
	granted, err := r.Limits.Raise(ctx, r.Limits.Spent+Least, max(r.Limits.MaxCost, r.Limits.Spent+Least))
	r.Limits.MaxCost = granted
	return r, err
}

// shortestSilence is how long an answer may be silent however little time the run has.
const shortestSilence = time.Minute

// Silence returns how long an answer may be silent: a quarter of the time that the run has left, and at most a limit. So a run whose service
// is silent ends with the reason, and not because its time is up.
func Silence(ctx context.Context, now time.Time, most time.Duration) time.Duration {
	end, limited := ctx.Deadline()
	if !limited {
		return most
	}
	return min(most, max(shortestSilence, end.Sub(now)/4))
}
