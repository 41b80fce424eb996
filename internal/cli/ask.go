package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/transcript"
)

type askOptions struct {
	text      string
	files     []string
	noInput   bool
	goOn      bool
	resume    string
	file      string
	fork      bool
	noSession bool
	model     string
	engine    string
	format    string
	input     string
	maxTurns  int
	partial   bool
	empty     bool // -r or --session has no value
	agent     agentOptions
}

func (o *askOptions) flags(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.files, "file", "f", nil, "attach this file (repeatable)")
	f.BoolVarP(&o.noInput, "no-input", "n", false, "do not read standard input")
	f.BoolVarP(&o.goOn, "continue", "c", false, "continue the latest conversation of this directory")
	f.StringVarP(&o.resume, "resume", "r", "", "continue the conversation whose id begins with this; without a value, choose "+
		"on the terminal")
	f.Lookup("resume").NoOptDefVal = pickOne
	f.StringVar(&o.file, "session", "", "continue the conversation of this transcript file")
	f.BoolVar(&o.fork, "fork-session", false, "with -c, -r or --session: continue in a copy, and leave the conversation as it is")
	f.BoolVar(&o.noSession, "no-session", false, "keep nothing of the conversation; the record has times, cost and outcome only")
	alias(f, "no-session", "no-session-persistence")
	f.StringVar(&o.model, "model", "", "use this model")
	f.StringVar(&o.engine, "engine", "", "use this engine, such as native or script:FILE")
	f.StringVar(&o.format, "output-format", "text", "text, json (one object) or stream-json (one object per event)")
	f.StringVar(&o.input, "input-format", "text", "text, the only format of standard input")
	f.BoolVar(&o.partial, "include-partial-messages", false, "with stream-json: include text as it arrives")
	o.agent.flags(f)
	f.IntVar(&o.maxTurns, "max-turns", 0, "fail after this many answers of the model; 0 means the engine's own limit")
}

func newAsk(d *deps) *cobra.Command {
	var o askOptions
	cmd := command(agentNever(nested), "ask [TEXT...]", "Ask the agent one question; ollim -p is the same",
		func(cmd *cobra.Command, args []string) error {
			o.text = strings.TrimSpace(strings.Join(args, " "))
			f := cmd.Flags()
			o.empty = f.Changed("resume") && o.resume == "" || f.Changed("session") && o.file == ""
			if err := o.agent.check(f); err != nil {
				return err
			}
			return runAsk(cmd.Context(), d, o)
		})
	o.flags(cmd.Flags())
	return cmd
}

func runAsk(ctx context.Context, d *deps, o askOptions) error {
	outlivePipe()
	if err := o.check(); err != nil {
		return err
	}
	h, err := d.Home()
	if err != nil {
		return err
	}
	q, options, err := o.question(ctx, d, h)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v := &voice{
		d: d, format: o.format, partial: o.partial, stop: cancel, began: d.Now(), root: q.Root,
		tools: tools.BuiltIns(q.Tools), schema: q.Schema, shown: d.answerText(h.Config.Chat),
	}
	options.Observe = run.Observer{Event: v.hear, Text: v.delta()}
	stop := d.watch("ask")
	r, err := h.Turns(d.atShell()).Ask(ctx, q, options)
	stop()
	if r.ID == "" {
		return explain(err)
	}
	v.end(h, r, err)
	if errors.Is(v.err, syscall.EPIPE) {
		return &reported{statusUnwritten} // the reader has closed the pipe
	}
	d.account("ask", "", r)
	err = (&fireOptions{}).verdict(d, r, err)
	if errors.Is(err, provider.ErrTooLong) {
		err = hint(err, "ask for less at once, in a new session, or go back: ollim session branch %s --after N", r.SessionAfter)
	}
	return err
}

func (o *askOptions) check() error {
	switch {
	case !slices.Contains([]string{"text", "json", "stream-json"}, o.format):
		return usage("--output-format %q: want text, json or stream-json", o.format)
	case o.partial && o.format != "stream-json":
		return usage("--include-partial-messages needs --output-format stream-json")
	case o.empty:
		return usage("-r and --session want an id or a file, not an empty word")
	case o.goOn && o.resume+o.file != "", o.resume != "" && o.file != "":
		return usage("-c, -r and --session exclude each other")
	case o.fork && !o.goOn && o.resume+o.file == "":
		return usage("--fork-session needs -c, -r or --session")
	case o.input == "stream-json":
		return usage("--input-format stream-json: ask takes one question: pipe in its text, and put further ones with -c")
	case o.input != "text":
		return usage("--input-format %q: want text", o.input)
	case o.maxTurns < 0:
		return usage("--max-turns %d: want 0 or more", o.maxTurns)
	}
	if o.engine != "" {
		if err := config.CheckEngine(o.engine); err != nil {
			return usage("--engine: %v", err)
		}
	}
	return nil
}

func (o *askOptions) question(ctx context.Context, d *deps, h app.Home) (turn.Question, turn.Options, error) {
	q := turn.Question{Text: o.text, MaxTurns: o.maxTurns, Discard: o.noSession}
	if o.maxTurns > 0 {
		q.Needs.Turns = "--max-turns"
	}
	options := turn.Options{Engine: o.engine, Model: o.model, Owner: d.atShell()}
	var err error
	if q.Root, err = workingDir(); err != nil {
		return q, options, err
	}
	if o.agent.maxCost > 0 {
		q.Needs.MaxCost = "--max-cost"
	}
	if err := o.agent.apply(&q); err != nil {
		return q, options, err
	}
	asks := newAsker(d.In)
	typed, piped := q.Text, !o.noInput && !isTerminal(d.In) // piped text does not name files
	choosing := o.resume == pickOne && isTerminal(d.In)
	nothing := hint(usage("nothing to ask"), "ollim -p \"TEXT\", or pipe something in")
	if q.Text == "" && !piped && !choosing {
		return q, options, nothing
	}
	t, err := o.transcript(ctx, d, h, q.Root, asks)
	if err == nil && t.ID != "" {
		err = continues(h, t, o.fork, &q, &options)
	}
	if err == nil && piped {
		options.Input, err = d.readPiped(h, h.Turns(d.atShell()).PlanOf(options.Engine, options.Model))
	}
	switch {
	case err == nil && q.Text == "" && choosing:
		line, _ := asks.ask(ctx, d.Stderr, "> ") // text before the end of the input counts
		q.Text = strings.TrimSpace(line)
		if typed = q.Text; typed == "" {
			err = usage("nothing to ask")
		}
	case err == nil && q.Text == "":
		if q.Text, options.Input = strings.TrimSpace(options.Input), ""; q.Text == "" {
			err = nothing
		}
	}
	if err == nil {
		q.Files, err = attachments(typed, o.files, h.Runner(true).Hides)
	}
	return q, options, err
}

func continues(h app.Home, t transcript.Transcript, fork bool, q *turn.Question, options *turn.Options) error {
	others, err := h.Conversations()
	if err != nil {
		return err
	}
	q.Session, q.Branch, q.Fork = t.ID, others[t.ID], fork
	holder := engine.HolderOf(t.Header)
	if holder == engine.Script {
		holder = t.Provider
	}
	options.Engine, options.Model = cmp.Or(options.Engine, holder), cmp.Or(options.Model, t.Model)
	if options.Engine == engine.ClaudeCode && t.Cwd != q.Root {
		return hint(usage("%s can only be continued in its own directory", t.ID), "cd %s", t.Cwd)
	}
	return nil
}

// workingDir returns the working directory without links, so that a path with links has the same sessions.
func workingDir() (string, error) {
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", hint(fmt.Errorf("the working directory: %s", store.Cause(err)), "change to a directory that exists and is "+
			"readable")
	}
	return dir, nil
}

// transcript returns the transcript to continue; the zero one begins a new session.
func (o *askOptions) transcript(ctx context.Context, d *deps, h app.Home, root string, asks *asker) (transcript.Transcript, error) {
	sessions := h.Transcripts()
	switch {
	case o.goOn:
		if root != string(h.Dir) {
			t, err := sessions.Latest(root)
			if errors.Is(err, transcript.ErrUnknown) {
				err = noSessionIn(root)
			}
			return t, err
		}
		list, err := questions(h, root)
		if err != nil {
			return transcript.Transcript{}, err
		}
		return list[0].Transcript, nil
	case o.resume == pickOne:
		if !isTerminal(d.In) {
			return transcript.Transcript{}, hint(usage("-r wants an id: no terminal to choose on"), "ollim session list --here")
		}
		list, err := questions(h, root)
		if err != nil {
			return transcript.Transcript{}, err
		}
		return d.pickSession(ctx, asks, list)
	case o.resume != "":
		t, err := sessions.FindPrefix(o.resume)
		if err != nil {
			err = app.NoTranscript(o.resume, err)
		}
		return t, err
	case o.file != "":
		return openSession(sessions, o.file)
	}
	return transcript.Transcript{}, nil
}

// questions returns the sessions of questions that were asked in a directory, the latest first. It is an error if there is none.
func questions(h app.Home, root string) ([]transcript.Summary, error) {
	list, _, err := h.Transcripts().List(root, prompt.Said())
	if err != nil {
		return nil, err
	}
	if root == string(h.Dir) { // the sessions of main and of routines have the same directory
		others, err := h.Conversations()
		if err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(s transcript.Summary) bool { return others[s.ID] })
	}
	if len(list) == 0 {
		return nil, noSessionIn(root)
	}
	return list, nil
}

func noSessionIn(root string) error {
	return hint(&withStatus{fmt.Errorf("no session in %s", root), statusNoJob}, "ollim session list --all")
}

// openSession opens a transcript by its path. It must be in the data directory, where engines look for it.
func openSession(sessions transcript.Dir, file string) (transcript.Transcript, error) {
	t, err := transcript.Open(file)
	if errors.Is(err, transcript.ErrForeign) {
		return t, &withStatus{fmt.Errorf("%s: %w", file, transcript.ErrForeign), statusData}
	}
	if err != nil {
		return t, app.NoTranscript(file, err)
	}
	known, err := sessions.Find(t.ID)
	if err == nil && known.Path != t.Path && !sameFile(file, known.Path) {
		return t, hint(usage("%s is a copy of %s", file, known.Path), "ollim -r %s", t.ID)
	}
	if errors.Is(err, transcript.ErrUnknown) {
		place := sessions.Place(t.Header)
		return t, hint(usage("%s is not in %s", file, sessions), "mkdir -p %s && cp -n %s %s", filepath.Dir(place), file, place)
	}
	return known, err
}

const picks = 20

func (d *deps) pickSession(ctx context.Context, asks *asker, list []transcript.Summary) (transcript.Transcript, error) {
	var none transcript.Transcript
	list = list[:min(len(list), picks)]
	for i, s := range list {
		at := s.Modified.Format("2006-01-02 15:04")
		if isTerminal(d.Stderr) {
			at = fmt.Sprintf("%-16s", relative(d.Now(), s.Modified, at))
		}
		_, _ = fmt.Fprintf(d.Stderr, "%2d  %s  %s  %s\n", i+1, at, s.ID, printable(s.First))
	}
	line, err := asks.ask(ctx, d.Stderr, "which? ")
	if err != nil {
		return none, usage("no choice was made")
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || n < 1 || n > len(list) {
		return none, usage("%q is not in the list: want a number from 1 to %d", strings.TrimSpace(line), len(list))
	}
	return list[n-1].Transcript, nil
}
