package cli

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/app"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/ui"
)

//go:embed demo
var demoFiles embed.FS

func newDemo(d *deps) *cobra.Command {
	var keep bool
	var inbox string
	cmd := command(agentNever(programs), "demo", "Show a routine at work in a temporary directory, without an account",
		func(cmd *cobra.Command, _ []string) error {
			if inbox != "" {
				return receive(d.In, inbox)
			}
			return runDemo(cmd.Context(), d, keep)
		})
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the data directory")
	cmd.Flags().StringVar(&inbox, "receive", "", "append standard input to a file: the demo's own delivery command")
	_ = cmd.Flags().MarkHidden("receive") // cannot fail: it was defined in the line above
	return cmd
}

func receive(in io.Reader, path string) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	return store.AppendJSON(path, store.Buffered, string(text))
}

func runDemo(ctx context.Context, d *deps, keep bool) (err error) {
	dir, err := os.MkdirTemp("", "ollim-demo-")
	if err != nil {
		return err
	}
	if !keep {
		defer func() {
			if removeErr := os.RemoveAll(dir); err == nil {
				err = removeErr
			}
		}()
	}
	show, err := d.prepareDemo(dir)
	if err != nil {
		return err
	}
	if err := show.play(ctx); err != nil {
		return err
	}
	return d.demoEnd(dir, keep)
}

func (d *deps) prepareDemo(dir string) (*demo, error) {
	if err := copyFiles(dir); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	inbox := filepath.Join(dir, "delivered.jsonl")
	settings := fmt.Sprintf("timezone: America/New_York\ndelivery:\n  command: [%q, demo, --receive, %q]\n", self, inbox)
	if err := store.Replace(filepath.Join(dir, "config.yaml"), []byte(settings)); err != nil {
		return nil, err
	}
	inside := *d
	inside.Stdout = d.Out
	inside.App = &app.App{ // without a terminal: messages to the owner go through the delivery command
		Machine: d.Machine, Warn: d.warn, Commands: d.Commands,
		DataDir: dir, ConfigPath: filepath.Join(dir, "config.yaml"),
	}
	inside.Lookup = func(name string) (string, bool) { // the caller's settings are not the demo's
		if name == "HOME" || name == "PATH" {
			return d.Lookup(name)
		}
		return "", false
	}
	return &demo{d: &inside, inbox: inbox}, nil
}

// copyFiles gives files the permissions of a data directory.
func copyFiles(dir string) error {
	return fs.WalkDir(demoFiles, "demo", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := demoFiles.ReadFile(path)
		if err != nil {
			return err
		}
		return store.Replace(filepath.Join(dir, strings.TrimPrefix(path, "demo/")), text)
	})
}

func (d *deps) demoEnd(dir string, keep bool) error {
	text := "The temporary directory has been removed. Next:\n" +
		"  ollim demo --keep      run the demo again and keep the directory\n" +
		"  ollim init             set up your own: engine, messages to you, a routine\n" +
		"  ollim help tutorial    the first hour, step by step"
	if keep {
		text = fmt.Sprintf("The directory was kept. To look around in it:\n"+
			"  export OLLIM_DATA_DIR=%s\n"+
			"  ollim run list\n"+
			"  ollim run log daily-market\n"+
			"  ollim update list --all\n"+
			"  ollim schedule list -n 5\n"+
			"  cat $OLLIM_DATA_DIR/state/session_history.jsonl", dir)
	}
	return d.answer(text, nil)
}

type demo struct {
	d     *deps
	inbox string // what was delivered
	seen  int    // messages of the inbox that were shown
}

func (s *demo) play(ctx context.Context) error {
	const day = 24 * time.Hour
	start := time.Date(2026, time.March, 2, 14, 0, 0, 0, time.UTC) // a Monday, 9:00 in New York, when the routine fires
	acts := []struct {
		job   string
		after time.Duration
		title string
	}{
		{"daily-market", 0, "the first fire starts a session"},
		{"daily-market", day, "the second fire continues it; the oil price has moved"},
		{"daily-market", 2 * day, "the third fire; the agent decides to compact its session"},
		{"evening", 2*day + 9*time.Hour, "a turn of the main conversation"},
	}
	s.say("A persistent routine, fired on three days of an invented week.\n" +
		"A script takes the place of the model; everything else is real. The output below is read from the state files.\n")
	for _, act := range acts {
		if err := s.act(ctx, act.job, start.Add(act.after), act.title); err != nil {
			return err
		}
	}
	return nil
}

func (s *demo) act(ctx context.Context, job string, at time.Time, title string) error {
	s.d.Now = func() time.Time { return at }
	h, err := s.d.Home()
	if err != nil {
		return err
	}
	s.say("\n%s  $ ollim fire %s\n  (%s)\n", clock(at.In(h.Config.Zone)), job, title)
	r, err := h.Firer().Fire(ctx, job, fire.Options{})
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %s", job, r.Outcome), err)
	}
	if r, err = h.Runs.Load(r.ID); err != nil {
		return err
	}
	if err := s.reported(h, r); err != nil {
		return err
	}
	for e, err := range h.Runs.Events(r.ID, nil) {
		if err != nil {
			return err
		}
		if head, text := demoLine(r, e); head != "" {
			s.part(head, text)
		}
	}
	return s.after(ctx, h, r)
}

func demoLine(r runlog.Record, e runlog.Event) (head, text string) {
	switch e.Type {
	case runlog.Session:
		if r.SessionBefore == "" {
			return "session", e.Session + ", new"
		}
		return "session", e.Session + ", resumed"
	case runlog.Ping:
		return "ping", e.Text
	case runlog.Report:
		return "report", e.Text
	case runlog.Text:
		return "agent", e.Text
	case runlog.CompactWish:
		return "compact", "requested by the agent: " + e.Text
	case runlog.Compacted:
		return "compacted", fmt.Sprintf("%s -> %s, context %d -> %d tokens", e.Parent, e.Session, e.Before, e.After)
	case runlog.UsageEvent:
		return "context", fmt.Sprintf("%d tokens", e.Usage.In)
	}
	return "", ""
}

func (s *demo) reported(h app.Home, r runlog.Record) error {
	prompt, err := store.Read(h.Dir.Run(r.ID, "prompt.txt"))
	if err != nil {
		return err
	}
	_, updates, found := strings.Cut(string(prompt), "RECENT BACKGROUND UPDATES")
	if !found {
		return nil
	}
	updates, _, _ = strings.Cut(updates, "\n\n")
	_, updates, _ = strings.Cut(updates, "\n")
	s.part("updates", updates)
	return nil
}

func (s *demo) after(ctx context.Context, h app.Home, r runlog.Record) error {
	number := 0
	for text, err := range store.Lines[string](s.inbox, nil) {
		if err != nil {
			return err
		}
		if number++; number > s.seen {
			s.seen = number
			s.part("delivered", strings.TrimSuffix(strings.TrimSpace(text), "\n\n"+prompt.CatchingUp))
		}
	}
	pending, err := h.Updates.Peek(ctx)
	if err == nil {
		s.say("  record     %s: %s, %s afterwards\n", r.ID, r.Outcome, plaintext.Count(len(pending), "pending update"))
	}
	return err
}

// say writes to standard output; a failed write shows when it is flushed.
func (s *demo) say(format string, args ...any) { _, _ = fmt.Fprintf(s.d.Out, format, args...) }

// part writes a text after its label, in lines of at most 100 columns.
func (s *demo) part(what, text string) {
	line := fmt.Sprintf("  %-10s %s", what, strings.Join(strings.Fields(text), " "))
	s.say("%s\n", strings.Join(ui.Wrap(line, min(ui.Columns(s.d.Stdout), 100), 13), "\n"))
}
