package fire

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/changed"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit"
)

// script writes an executable to gates/.
func (d *fixture) script(name, lines string) {
	d.t.Helper()
	must(d.t, os.MkdirAll(d.Home.Path("gates"), 0o700))
	must(d.t, testkit.WriteFile(d.Home.Gate(name), []byte("#!/bin/sh\n"+lines+"\n"), 0o700))
}

// warns collects the warnings.
func (d *fixture) warns() *[]string {
	var all []string
	d.Disk.Warn = func(message string) { all = append(all, message) }
	return &all
}

// TestVerify: a refused run goes on as often as its job allows, with the reason, and fails with the last reason.
func TestVerify(t *testing.T) {
	t.Parallel()
	twice := "echo x >> tries; [ $(wc -l < tries) = 2 ] && exit 0\nprintf 'first\\n\\nbad \\033result\\n\\n'; exit 1"
	for name, c := range map[string]struct {
		script, retry string
		turns         int
		err           string // "": the run is OK
	}{
		"accepts":              {"exit 0", "0", 1, ""},
		"accepts the second":   {twice, "1", 2, ""},
		"no retry":             {twice, "0", 1, "bad result"},
		"refuses":              {"echo no >&2; exit 1", "2", 3, "no"},
		"refuses in silence":   {"exit 1", "0", 1, "verify check: exit status 1: it printed no reason"},
		"is broken":            {"echo out; echo why >&2; exit 2", "1", 1, "verify is broken: check: exit status 2: why"},
		"is broken, by print":  {"echo out; exit 2", "1", 1, "verify is broken: check: exit status 2: out"},
		"prints much":          {"yes x | head -n 9000; echo bad result; exit 1", "0", 1, "bad result"},
		"is broken in silence": {"exit 2", "1", 1, "verify is broken: check: exit status 2: it printed no reason"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []engine.Request
			d := newFixture(t, runtest.Answering{Asked: &asked}, time.Hour, "verify: check", "retry: "+c.retry)
			d.script("check", c.script)
			d.approve()
			var seen []runlog.Event
			r, _ := New(d.Runner).Fire(t.Context(), "a", Options{Observe: run.Observer{Event: func(e runlog.Event) {
				if e.Type == runlog.Verified {
					seen = append(seen, e)
				}
			}}})
			if len(asked) != c.turns || r.Error != c.err || (r.Outcome == runlog.OK) != (c.err == "") || r.Unverified() != (c.err != "") {
				t.Errorf("%d turns, %s: %q", len(asked), r.Outcome, r.Error)
			}
			if last := asked[len(asked)-1]; c.turns > 1 && !strings.Contains(last.Input.Prompt, strings.Fields(c.script)[1]) && !strings.Contains(last.Input.Prompt, "bad result") {
				t.Errorf("prompt %q", last.Input.Prompt)
			}
			if len(seen) != c.turns || seen[len(seen)-1].IsError != (c.err != "") || seen[len(seen)-1].Count != 0 || c.turns > 1 && seen[0].Count != 1 {
				t.Errorf("events %+v", seen)
			}
			if asked[len(asked)-1].Input.Nudge {
				t.Error("the reason is no reminder to report")
			}
			if c.err != "" && len(d.causes()) != 1 {
				t.Errorf("causes %q", d.causes())
			}
		})
	}
}

// TestVerifyOfAStoppedRun: a run that is stopped while its checker runs has no verdict.
func TestVerifyOfAStoppedRun(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Hour, "verify: check")
	d.script("check", "exit 1")
	j := d.job("a")
	r := d.began(j, nil)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	p := programs{r: d.Runner, job: j}
	turn := &conversation.Turn{Parts: conversation.Parts{Run: r}}
	must(t, p.noteVerdict(stopped, turn, errLater, 0))
	if got, err := d.Runs.Load(r.ID); err != nil || got.Verify != "" {
		t.Errorf("%q, %v", got.Verify, err)
	}
	if _, err := p.askVerify(stopped, d.ToolsOf(r, nil)); !errors.Is(err, context.Canceled) && err == nil {
		t.Error(err)
	}
}

// TestAfter: the after executable has the record on standard input and runs whenever the job was tried; its failure is a warning.
func TestAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		engine runtest.Turn
		more   string
		ran    bool
		warn   string
	}{
		"ok":     {"cat > record", nothing, "", true, ""},
		"failed": {"cat > record", func(engine.Request) error { return errLater }, "", true, ""},
		"wrong":  {"cat > record; echo ' why ' >&2; exit 3", nothing, "", true, "after end: exit status 3: why"},
		"silent": {"cat > record; exit 3", nothing, "", true, "after end: exit status 3: it printed no reason"},
		"gated":  {"cat > record", nothing, "gate: no", false, ""},
		"paused": {"cat > record", nothing, "enabled: false", false, ""},
	} {
		d := newFixture(t, c.engine, time.Hour, "after: end", c.more)
		d.script("end", c.script)
		d.script("no", "exit 1")
		d.approve()
		warned := d.warns()
		r, _ := New(d.Runner).Fire(t.Context(), "a", Options{})
		text, err := os.ReadFile(d.Home.Path("record"))
		if (err == nil) != c.ran || c.ran && (!strings.Contains(string(text), `"outcome":"`+string(r.Outcome)+`"`) || !strings.HasSuffix(string(text), "}\n")) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		if got := strings.Join(*warned, "\n"); got != c.warn {
			t.Errorf("%s: %q, want %q", name, got, c.warn)
		}
		if left, _ := filepath.Glob(d.Home.Run(r.ID, "programs")); len(left) > 0 {
			t.Errorf("%s: left %q", name, left)
		}
	}
}

// TestOutputOfAGate: what a gate prints is cut, and has no control characters.
func TestOutputOfAGate(t *testing.T) {
	t.Parallel()
	full, over := strings.Repeat("x", gateOutput), strings.Repeat("ä", gateOutput+1)
	for printed, want := range map[string]string{
		full: full, over: over[:2*gateOutput] + "\n[cut]", strings.Repeat("x", 5*gateOutput): full + "\n[cut]", "a\x1b\tb\nc\xff\n": "a\tb\nc\ufffd", "": "",
	} {
		d := newFixture(t, runtest.Turn(nothing), time.Hour, "gate: check")
		must(t, os.WriteFile(d.Home.Path("text"), []byte(printed), 0o600))
		d.script("check", "cat text")
		p, r := d.programs("check")
		if got, err := p.gate(t.Context(), d.ToolsOf(r, nil)); got != want || err != nil {
			t.Errorf("%.20q (%d): %.20q (%d), %v", printed, len(printed), got, len(got), err)
		}
	}
}

// programs returns the programs of the job a that may start, and a run.
func (d *fixture) programs(name string) (programs, *runlog.Run) {
	d.t.Helper()
	j := d.job("a")
	s, _, err := d.Approvals.Of(j)
	must(d.t, err)
	return programs{r: d.Runner, job: j, permitted: map[string]string{name: s.Gate(name)}}, d.began(j, nil)
}

// TestCopied: only the approved bytes are executed, from a copy that replaces what a killed process left; its path is not shown.
func TestCopied(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Hour, "gate: check")
	d.script("check", "echo $0 >&2; exit 2")
	p, r := d.programs("check")
	must(t, os.MkdirAll(d.Home.Run(r.ID, "programs"), 0o700))
	must(t, os.WriteFile(d.Home.Run(r.ID, "programs", "check"), []byte("old"), 0o600))
	if _, err := p.gate(t.Context(), d.ToolsOf(r, nil)); err == nil || err.Error() != "gate check: exit status 2: "+d.Home.Gate("check") {
		t.Error(err)
	}
	d.script("check", "exit 0")
	if _, err := p.gate(t.Context(), d.ToolsOf(r, nil)); !errors.Is(err, errChanged) {
		t.Error(err)
	}
	must(t, os.Remove(d.Home.Gate("check")))
	if _, err := p.gate(t.Context(), d.ToolsOf(r, nil)); err == nil || !strings.HasSuffix(err.Error(), "gates/check: no such file or directory") {
		t.Error(err)
	}
	if left, _ := filepath.Glob(d.Home.Run(r.ID, "programs", "*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	must(t, testkit.WriteFile(d.Home.Gate("check"), []byte("#!/none\n"), 0o700))
	p, _ = d.programs("check")
	if _, err := p.gate(t.Context(), d.ToolsOf(r, nil)); err == nil || strings.Contains(err.Error(), "/programs/") || !strings.Contains(err.Error(), "gates/check: its interpreter: no such file") {
		t.Error(err)
	}
}

// TestLastLine: the last line that is not blank, at most 500 characters of it.
func TestLastLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", verifyReason+1)
	for text, want := range map[string]string{"": "", "a\n b \n\n": "b", "a\x07": "a", long[1:]: long[1:]} {
		if got := lastLine(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := lastLine(long); len([]rune(got)) > verifyReason {
		t.Errorf("%d characters", len(got))
	}
}

// TestVerifyNeedsTheEvents: the checker does not start, and no verdict counts, if the events of the run cannot be read.
func TestVerifyNeedsTheEvents(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Hour, "verify: check")
	d.script("check", "touch started; rm $EVENTS; mkdir $EVENTS; exit 0")
	p, r := d.programs("check")
	must(t, r.Event(t.Context(), runlog.Event{Type: runlog.Session, Session: "s"}))
	events := d.Home.Run(r.ID, "events.jsonl")
	d.Host.Env = []string{"EVENTS=" + events, "PATH=" + os.Getenv("PATH")}
	turn := &conversation.Turn{Parts: conversation.Parts{Run: r}}
	if err := p.verify(t.Context(), d.ToolsOf(r, nil), turn); err == nil {
		t.Error("the events are gone, and the run is accepted")
	}
	must(t, os.Remove(d.Home.Path("started")))
	if _, err := p.askVerify(t.Context(), d.ToolsOf(r, nil)); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(d.Home.Path("started")); err == nil {
		t.Error("the checker was started")
	}
}

// TestRetriesOfAnEarlierAttempt: they count when the reminder is tried again.
func TestRetriesOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Hour, "verify: check", "retry: 1")
	d.script("check", "echo no; exit 1")
	p, r := d.programs("check")
	p.retried = 1
	if err := p.verify(t.Context(), d.ToolsOf(r, nil), &conversation.Turn{Parts: conversation.Parts{Run: r}}); err == nil || err.Error() != "no" {
		t.Error(err)
	}
}

// TestReportAfterAVerdict: an agent that pings the owner in its second turn must report that, too.
func TestReportAfterAVerdict(t *testing.T) {
	t.Parallel()
	turns := 0
	d := newFixture(t, turnOf{func(sink engine.Sink) error {
		if turns++; turns != 2 {
			return nil
		}
		return sink(runlog.Event{Type: runlog.Ping, Text: "!"})
	}}, time.Hour, "verify: check", "retry: 1")
	d.script("check", "[ -e no ] && exit 0; touch no; exit 1")
	d.approve()
	d.fires(Options{}, runlog.Unreported, false)
}

// TestChangesAreCommitted: the values that a run's gate found changed are kept if the run went well, and only then.
func TestChangesAreCommitted(t *testing.T) {
	t.Parallel()
	for _, outcome := range []runlog.Outcome{runlog.OK, runlog.Failed} {
		d := newFixture(t, runtest.Turn(nothing), time.Hour)
		p, r := d.programs("none")
		must(t, d.Changes.Propose(t.Context(), r.ID, "page", []byte("new")))
		r.Outcome = outcome
		p.after(t.Context(), d.ToolsOf(r, nil))
		_, differs, err := d.Changes.CompareOf(changed.Job{Kind: r.Kind, ID: "a"}, "page", []byte("new"), false)
		if differs != (outcome != runlog.OK) || err != nil {
			t.Errorf("%s: differs %v, %v", outcome, differs, err)
		}
	}
}
