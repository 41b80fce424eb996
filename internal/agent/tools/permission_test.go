package tools_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/runlog"
)

const gitStatus = `{"command":"git status"}`

// owner answers every question of the fixture's run, as the process that runs a turn does, until the test ends. It returns the
// patterns that it was asked about.
func owner(d *fixture, allows bool) (asked chan string) {
	asked = make(chan string, 8)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			open, err := d.Run.Unanswered()
			if err != nil {
				d.t.Error(err)
			}
			for _, use := range open {
				asked <- use.Text
				if err := d.Run.Event(ctx, runlog.Event{Type: runlog.Permitted, ToolID: use.ToolID, IsError: !allows}); err != nil {
					d.t.Error(err)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond): // the other side has no more than the file either
			}
		}
	}()
	d.t.Cleanup(func() { cancel(); <-done })
	return asked
}

// TestPermissionModes: what a pattern could allow is refused, asked or accepted, by the mode.
func TestPermissionModes(t *testing.T) {
	t.Parallel()
	const write = `{"file_path":"a.txt","content":"x"}`
	for _, tc := range []struct {
		mode          string
		terminal, yes bool
		tool, input   string
		asked         []string
		reason        string // "" allows
	}{
		{mode: "", tool: "Bash", input: gitStatus, reason: "matches none of the allowed patterns"},
		{mode: "default", terminal: true, yes: true, tool: "Bash", input: gitStatus, asked: []string{"Bash(git status)"}},
		{mode: "default", terminal: true, tool: "Bash", input: gitStatus, asked: []string{"Bash(git status)"}, reason: "the owner said no"},
		{mode: "default", terminal: true, yes: true, tool: "Write", input: write, asked: []string{"Write(./a.txt)"}},
		{mode: "default", tool: "Bash", input: gitStatus, reason: "no terminal"},
		{mode: "default", terminal: true, yes: true, tool: "Read", input: `{"file_path":"config.yaml"}`, reason: "protected"},
		{mode: "acceptEdits", tool: "Write", input: write},
		{mode: "acceptEdits", terminal: true, yes: true, tool: "Bash", input: gitStatus, asked: []string{"Bash(git status)"}},
		{mode: "acceptEdits", tool: "Write", input: `{"file_path":"gates/g","content":"x"}`, reason: "protected"},
	} {
		d := newFixture(t, runlog.Record{Mode: "foreground", Foreground: true, Permissions: tc.mode, MayAsk: tc.terminal, Tools: []string{"Bash(ollim *)", "Write(./**.md)", "Read(./**.md)"}})
		asked := owner(d, tc.yes)
		reason, err := d.Verdict(ctx, tc.tool, "t1", json.RawMessage(tc.input))
		var about []string
		for len(asked) > 0 {
			about = append(about, <-asked)
		}
		if err != nil || (reason == "") != (tc.reason == "") || !strings.Contains(reason, tc.reason) || !slices.Equal(about, tc.asked) {
			t.Errorf("%s in %q: %q, %v, asked %q", tc.tool, tc.mode, reason, err, about)
		}
	}
}

// TestPermissionEndsWithTheTurn: a turn that is stopped does not wait for the owner.
func TestPermissionEndsWithTheTurn(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runlog.Record{Mode: "foreground", Foreground: true, Permissions: "default", MayAsk: true, Tools: []string{"Bash(ollim *)"}})
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if reason, err := d.Verdict(ctx, "Bash", "t1", json.RawMessage(gitStatus)); err == nil {
		t.Errorf("%q, want an error", reason)
	}
}
