package claudecode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
	"github.com/ollim/ollim/internal/platform/store"
)

// The command updates itself, and versions differ in behaviour although runs end normally: in what a cost includes, in when a system
// prompt takes effect, in what they listen to. So the first run after the program changed asks for its version and flags, and tests it
// briefly against a service in this process (see canary). The result is kept until the program changes again.

// The oldest and the newest version of the command that ollim was tested with. The project's CI installs both.
const (
	oldest = "2.1.197"
	newest = "2.1.330"
)

// Install is the shell command that installs a tested version.
const Install = "npm install -g @anthropic-ai/claude-code@" + newest

// Untested returns how a version relates to the tested ones, as the end of a sentence; "" if it is between them or unknown.
func Untested(version string) string {
	v, ok := numbers(version)
	first, _ := numbers(oldest)
	last, _ := numbers(newest)
	switch {
	case !ok && version != "":
		return "cannot be compared with the versions that ollim was tested with"
	case !ok:
		return ""
	case slices.Compare(v, first) < 0:
		return "is older than " + oldest + ", the oldest that ollim was tested with"
	case slices.Compare(v, last) > 0:
		return "is newer than " + newest + ", the newest that ollim was tested with"
	}
	return ""
}

func numbers(version string) (list []int, ok bool) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}

// canaries is the version of the checks. A program that passed another version is checked again.
const canaries = 1

// trialLimit is the time limit of the trial, which takes three seconds on an idle machine.
const trialLimit = 2 * time.Minute

// recheck is how long a failure is kept before the program is checked again, because the machine may have caused it.
const recheck = 10 * time.Minute

// Known is the result of checking a program.
type Known struct {
	Path     string    `json:"path"` // path as configured
	File     string    `json:"file"` // path with links resolved
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Canaries int       `json:"canaries"`

	Version string    `json:"version"`
	Flags   []string  `json:"flags"` // optional flags that the program has
	Checked time.Time `json:"checked"`
	Fault   string    `json:"fault,omitempty"` // the check that failed
}

// Flags that only some of the tested versions have.
const (
	flagSnapshot    = "--system-prompt-snapshot"
	flagRestricted  = "--restricted"
	flagPrompts     = "--permission-prompts"
	flagAutoCompact = "--autocompact"
)

func optional() []string { return []string{flagSnapshot, flagRestricted, flagPrompts, flagAutoCompact} }

// keepsSummary reports whether --resume-session-at keeps the summary of a compaction if it names an answer that the compaction has kept
// word for word. Version 2.1.197 loses the summary.
func (k Known) keepsSummary() bool {
	v, _ := numbers(k.Version)
	least, _ := numbers("2.1.330")
	return slices.Compare(v, least) >= 0
}

func (k Known) has(flag string) bool { return slices.Contains(k.Flags, flag) }

// Contract returns the result of the check of the command. It runs the check if the program has changed. The error wraps engine.ErrSetup
// if the command cannot be run, or does not do what ollim relies on.
func (e *Engine) Contract(ctx context.Context) (Known, error) {
	now, err := e.identity()
	if err != nil {
		return now, err
	}
	known, current := e.recall(now)
	if !current {
		unlock, err := e.alone(ctx)
		if err != nil {
			return now, err
		}
		defer unlock()
		if known, current = e.recall(now); !current { // otherwise another process has checked it meanwhile
			if known, err = e.examine(ctx, now); err != nil {
				return known, err
			}
		}
	}
	if known.Fault != "" {
		return known, fmt.Errorf("%w: claude %s does not do what ollim relies on: %s; install a version that was tested: %s",
			engine.ErrSetup, known.Version, known.Fault, Install)
	}
	return known, nil
}

// ContractOf is Contract for the version that the command reports now. It drops the result for another version: a script that starts the
// command does not change together with it.
func (e *Engine) ContractOf(ctx context.Context, version string) (Known, error) {
	now, err := e.identity()
	if err != nil {
		return now, err
	}
	if known, current := e.recall(now); current && known.Version != version {
		e.unlearn()
	}
	return e.Contract(ctx)
}

// Installed returns the version of the command, from the last check or from the command itself. The error wraps engine.ErrSetup.
func (e *Engine) Installed(ctx context.Context) (string, error) {
	now, err := e.identity()
	if err != nil {
		return "", err
	}
	if known, current := e.recall(now); current {
		return known.Version, nil
	}
	return e.Version(ctx)
}

// otherVersion is the error of a command that is not the checked version, as when a script starts another one. It is an ErrSetup.
type otherVersion struct{ checked, found string }

func (o otherVersion) Error() string {
	return fmt.Sprintf("%v: claude is version %s, and version %s was checked; try again: the next run checks the new version",
		engine.ErrSetup, o.found, o.checked)
}

func (otherVersion) Unwrap() error { return engine.ErrSetup }

// forgetIf drops the result of the check if an error shows that the command has changed.
func (e *Engine) forgetIf(err error) error {
	if err != nil && (errors.As(err, new(otherVersion)) || strings.Contains(err.Error(), "unknown option")) {
		e.unlearn()
	}
	return err
}

// unlearn drops the result of the check.
func (e *Engine) unlearn() { _ = os.Remove(e.Home.ClaudeContract()) } // an error does no harm to a cache

// identity returns the facts that tell one program from another.
func (e *Engine) identity() (Known, error) {
	file := command.Followed(e.Command)
	info, err := os.Stat(file)
	if err != nil {
		return Known{}, fmt.Errorf("%w: %s: %s", engine.ErrSetup, e.Command, store.Cause(err))
	}
	return Known{Path: e.Command, File: file, Size: info.Size(), Modified: info.ModTime().UTC(), Canaries: canaries}, nil
}

// recall returns the stored result for a program, and reports whether it is current.
func (e *Engine) recall(now Known) (known Known, current bool) {
	known, _, err := store.PeekJSON[Known](e.Home.ClaudeContract())
	if err != nil { // a cache that cannot be read counts as missing
		return known, false
	}
	same := known.Path == now.Path && known.File == now.File && known.Size == now.Size && known.Modified.Equal(now.Modified) &&
		known.Canaries == now.Canaries
	return known, same && (known.Fault == "" || e.Disk.Now().Sub(known.Checked).Abs() < recheck)
}

// alone waits until no other process checks the command, and keeps others from it until unlock.
func (e *Engine) alone(ctx context.Context) (unlock func(), err error) {
	held, err := e.Disk.Locks.Wait(ctx, e.Home.Lock("claude"))
	if err != nil {
		return nil, err
	}
	return held.Release, nil
}

// examine checks a program and stores the result.
func (e *Engine) examine(ctx context.Context, now Known) (known Known, err error) {
	known = now
	if known.Version, err = e.Version(ctx); err != nil {
		return known, err
	}
	help, err := e.question(ctx, "--help")
	if err == nil {
		err = help.Failure()
	}
	if err != nil {
		return known, fmt.Errorf("%w: %s --help: %w", engine.ErrSetup, e.Command, err)
	}
	words := strings.Fields(string(help.Out))
	for _, flag := range optional() {
		if slices.Contains(words, flag) {
			known.Flags = append(known.Flags, flag)
		}
	}
	trial, cancel := context.WithTimeout(ctx, trialLimit)
	defer cancel()
	fault, err := e.canary(trial, known)
	if err != nil && trial.Err() != nil && ctx.Err() == nil {
		fault, err = fmt.Sprintf("it does not answer two prompts within %s", trialLimit), nil
	}
	if err != nil {
		return known, fmt.Errorf("%w: claude %s could not be checked after it changed: %w", engine.ErrSetup, known.Version, err)
	}
	known.Fault, known.Checked = fault, e.Disk.Now().UTC()
	if err := store.WriteJSON(e.Home.ClaudeContract(), known, store.Buffered); err != nil {
		e.Disk.Warn(fmt.Sprintf("claude %s was examined, and the next run will examine it again: %v", known.Version, err))
	}
	return known, nil
}
