package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/ui"
)

// deps is what commands work with: the streams, the flags that all commands have, and the process's App. Nothing is opened before
// a command asks for it, so --help and completion touch no file.
type deps struct {
	*app.App

	In     io.Reader
	Out    io.Writer // buffered standard output; on a terminal without control sequences
	Stdout io.Writer // the stream that Out writes to
	Stderr io.Writer
	// Automatic reports whether a cron daemon or a timer started this process.
	Automatic func() bool
	// Begin starts a command line that goes on without this process; nil: in a process of its own.
	Begin     func(args []string) (process.ID, error)
	Temporary []string // directories whose files do not stay, besides TMPDIR
	Free      func()   // returns memory to the system when a process that goes on for long has started; nil: this does not matter

	forwarded bool   // the command was sent by a process of a sealed run, which can do less than this process
	caller    string // the working directory of that process
	own       bool   // the run may use the command without a pattern: it shows only what belongs to the run and its job

	logFormat      string
	quiet, verbose bool
	version, json  bool         // are asked for by --version and --json
	layout         layout       // of lists
	pager          *ui.Pager    // nil: standard output is not paged
	screen         *ui.Screen   // with a status line or a prompt, which both streams write to; nil: there is none
	progress       *ui.Progress // of the run that a terminal waits for; nil: none is shown
	atPrompt       bool         // the command was typed at the prompt of chat
}

var errTooLong = errors.New("too long")

// jobSet returns the job files, and warns of those that cannot be read, except those whose error the command reports itself.
func (d *deps) jobSet(about ...string) (job.Set, app.Home, error) {
	h, err := d.Home()
	if err != nil {
		return job.Set{}, h, err
	}
	s, err := h.Jobs.Load()
	for _, fault := range s.Faults {
		if !slices.ContainsFunc(about, func(name string) bool { return stem(name) == stem(fault.File) }) {
			d.warn(fault.Error())
		}
	}
	return s, h, err
}

// stem is a job file's name without directory and .md.
func stem(path string) string { return strings.TrimSuffix(filepath.Base(path), ".md") }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func constructors() map[string]func(*deps) *cobra.Command {
	return map[string]func(*deps) *cobra.Command{
		"init": newInit, "demo": newDemo, "discord": newDiscord, "door": newDoor, "fire": newFire, "run": newRun, "events": newEvents,
		"routine": newRoutine, "schedule": newSchedule, "update": newUpdates, "check": newCheck, "reminder": newReminder,
		"remind": newRemind, "tick": newTick, "approve": newApprove, "ping": newPing, "budget": newBudget, "skill": newSkill,
		"task": newTask, "changed": newChanged, "names": newNames, "config": newConfig, "session": newSession,
		"chat": newChat, "fork": newFork, "ask": newAsk, "answer": newAnswer, "model": newModel, "backtest": newBacktest, "distil": newDistil, "pause": newPause,
		"resume": newResume, "stop": newStop, "status": newStatus, "doctor": newDoctor, "cost": newCost, "mcp": newMCP,
		"hook": newHook, "version": newVersion, "man": newMan, "webhook": newWebhook, "report": newReport, "secret": newSecret, "why": newWhy,
	}
}

// commandsFor builds the command that a command line begins with. If it begins with anything else (a flag, help, an unknown
// word) it builds every command. Building them all takes a tenth of the time that a start takes.
func commandsFor(d *deps, args []string) (list []*cobra.Command) {
	all := constructors()
	if len(args) > 0 {
		for _, name := range []string{args[0], strings.TrimSuffix(args[0], "s")} { // nouns may stand in the plural
			if build := all[name]; build != nil {
				return []*cobra.Command{build(d)}
			}
		}
	}
	for _, build := range all {
		list = append(list, build(d))
	}
	return list
}

// maxInput is how much is read from standard input for a prompt, in bytes.
const maxInput = 256 << 10

func readInput(in io.Reader) (string, error) {
	return readUpTo(in, maxInput, fmt.Sprintf("%d KiB", maxInput>>10), fmt.Sprintf("shorten it with head -c %d", maxInput))
}

// readUpTo reads standard input as text of at most most bytes. limit is that number as an error names it.
func readUpTo(in io.Reader, most int, limit, remedy string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err != nil {
		return "", &withStatus{fmt.Errorf("standard input: %s", store.Cause(err)), statusData}
	}
	if len(data) > most {
		return "", hint(fmt.Errorf("standard input: %w: more than %s", errTooLong, limit), "%s", remedy)
	}
	return string(bytes.ToValidUTF8(data, []byte("\ufffd"))), nil
}

// readPiped reads what is piped in for a model, up to a fifth of its context window: the rest is for the conversation and the answer.
func (d *deps) readPiped(h app.Home, plan engine.Plan) (string, error) {
	table, err := h.Models()
	if err != nil {
		return "", err
	}
	name, window := plan.Model, cmp.Or(plan.Window, table.Resolve(plan.Model).Window)
	if window == 0 {
		return readUpTo(d.In, maxInput, fmt.Sprintf("%d KiB, the limit while the window of the model is not known", maxInput>>10),
			fmt.Sprintf("shorten it with head -c %d, or state the window: ollim config set models '%s window=TOKENS'", maxInput, cmp.Or(name, "MODEL")))
	}
	most := window / 5 * engine.BytesPerToken
	return readUpTo(d.In, most, fmt.Sprintf("%d bytes, about %d tokens, a fifth of the window of %s (%d tokens)", most, window/5, name, window),
		fmt.Sprintf("shorten it with head -c %d, or choose a model with a larger window: ollim model list", most))
}

// wordsOrInput returns the words of a command line as a text, or standard input where they are a single -.
func wordsOrInput(d *deps, words []string) (string, error) {
	if text := strings.Join(words, " "); text != "-" {
		return text, nil
	}
	return readInput(d.In)
}

// readGiven reads at most most+1 bytes of a file that a command line names. The file may be a pipe, such as the shell's <(COMMAND). A pipe
// without a writer is empty, and ctx ends the wait for a writer.
func (d *deps) readGiven(ctx context.Context, file string, most int64) ([]byte, error) {
	f, err := d.openGiven(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	defer context.AfterFunc(ctx, func() { _ = f.Close() })()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return data, err
}

// openGiven opens a file that a command line names. For a process of a sealed run it opens only what that process may read.
func (d *deps) openGiven(file string) (*os.File, error) {
	if !d.forwarded {
		return os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	path, err := d.path(file)
	if err != nil {
		return nil, err
	}
	set, err := d.insideTools()
	if err != nil {
		return nil, err
	}
	return set.OpenFile(path)
}
