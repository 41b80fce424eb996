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
	"github.com/ollim/ollim/internal/platform/store"
)

// The command updates itself, and versions differ in meaning while every run ends well: in what a cost includes, in when a system
// prompt takes effect, in what they listen to. So the first run after the program has changed asks for its version and flags, and lets it
// work for a moment against a service of ours (see canary). What was found is kept until the program changes again.

// The oldest and the newest version of the command that ollim was tested with. .ci/run installs both.
const (
	oldest = "2.1.197"
	newest = "2.1.330"
)

// Install is the command that installs a version that was tested.
const Install = "npm install -g @anthropic-ai/claude-code@" + newest

// Untested returns how a version of the command stands to those that ollim was tested with, as the end of a sentence; "" if it is between
// them, or is not known.
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

// canaries is the version of the checks. A program that passed other ones is checked again.
const canaries = 1

// trialLimit bounds the trial, which takes three seconds on an idle machine.
const trialLimit = 2 * time.Minute

// recheck is how long a failure stands before it is checked again: it may have been the machine's.
const recheck = 10 * time.Minute

// Known is what was found out about a program.
type Known struct {
	Path     string    `json:"path"` // as it is configured
	File     string    `json:"file"` // with links resolved
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
	Canaries int       `json:"canaries"`

	Version string    `json:"version"`
	Flags   []string  `json:"flags"` // the optional flags that it has
	Checked time.Time `json:"checked"`
	Fault   string    `json:"fault,omitempty"` // the canary that failed
}

// The flags that only some of the tested versions have.
const (
	flagSnapshot    = "--system-prompt-snapshot"
	flagRestricted  = "--restricted"
	flagPrompts     = "--permission-prompts"
	flagAutoCompact = "--autocompact"
)

func optional() []string { return []string{flagSnapshot, flagRestricted, flagPrompts, flagAutoCompact} }

// keepsSummary reports whether the flag --resume-session-at keeps the summary of a compaction when it names an answer that the compaction has
// kept word for word. Version 2.1.197 loses it.
func (k Known) keepsSummary() bool {
	v, _ := numbers(k.Version)
	least, _ := numbers("2.1.330")
	return slices.Compare(v, least) >= 0
}

func (k Known) has(flag string) bool { return slices.Contains(k.Flags, flag) }

// Contract returns what is known of the command, and checks it first if its program has changed. The error wraps engine.ErrSetup if
// it cannot be run, or does not keep what ollim relies on.
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
		if known, current = e.recall(now); !current { // else another process has checked it meanwhile
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

// ContractOf is Contract for the version that the command names now. What is known of another one is forgotten: a script that starts the
// command does not change with it.
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

// Installed returns the version of the command: what is known, or what the command says. The error wraps engine.ErrSetup.
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

// otherVersion: the command is not the version that was checked, as where a script starts another one. It is an ErrSetup.
type otherVersion struct{ checked, found string }

func (o otherVersion) Error() string {
	return fmt.Sprintf("%v: claude is version %s, and version %s was checked; try again: the next run checks the new version",
		engine.ErrSetup, o.found, o.checked)
}

func (otherVersion) Unwrap() error { return engine.ErrSetup }

// forgetIf forgets what is known of the command if an error shows that it is not that command.
func (e *Engine) forgetIf(err error) error {
	if err != nil && (errors.As(err, new(otherVersion)) || strings.Contains(err.Error(), "unknown option")) {
		e.unlearn()
	}
	return err
}

// unlearn forgets what is known of the command.
func (e *Engine) unlearn() { _ = os.Remove(e.Home.ClaudeContract()) } // it is a cache

// identity returns what tells one program from another.
func (e *Engine) identity() (Known, error) {
	file := followed(e.Command)
	info, err := os.Stat(file)
	if err != nil {
		return Known{}, fmt.Errorf("%w: %s: %s", engine.ErrSetup, e.Command, store.Cause(err))
	}
	return Known{Path: e.Command, File: file, Size: info.Size(), Modified: info.ModTime().UTC(), Canaries: canaries}, nil
}

// recall returns what is known of a program, and reports whether that is still current.
func (e *Engine) recall(now Known) (known Known, current bool) {
	known, _, err := store.PeekJSON[Known](e.Home.ClaudeContract())
	if err != nil { // it is a cache
		return known, false
	}
	same := known.Path == now.Path && known.File == now.File && known.Size == now.Size && known.Modified.Equal(now.Modified) &&
		known.Canaries == now.Canaries
	return known, same && (known.Fault == "" || e.Disk.Now().Sub(known.Checked).Abs() < recheck)
}

// alone waits for other processes that check the command.
func (e *Engine) alone(ctx context.Context) (unlock func(), err error) {
	held, err := e.Disk.Locks.Wait(ctx, e.Home.Lock("claude"))
	if err != nil {
		return nil, err
	}
	return held.Release, nil
}

// examine finds out about a program, and keeps it.
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
