package fire

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/inbox"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
	"github.com/ollim/ollim/internal/testkit"
)

// TestSpecOfAJob: what a job's file and the options of a fire ask for is in the Spec.
func TestSpecOfAJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := newFixture(t, runtest.Turn(nothing), time.Minute, "allowed-tools: [WebSearch]", "skills: [s]", "subagent: helper", "dirs: ["+dir+"]", "model: small")
	f := &fire{r: d.Runner, job: d.job("a"), run: "x", claim: &claim{at: nine}}
	s := f.spec()
	below, err := policy.OfDir(policy.Root{Dir: dir})
	must(t, err)
	for _, want := range append(below, "WebSearch", "Task(helper)", policy.OfSkill("s")) {
		if !slices.Contains(s.Policy.Tools, want) {
			t.Errorf("%s is not in %q", want, s.Policy.Tools)
		}
	}
	if s.Engine.Model != "small" || len(s.Identity.Typed) != 0 || !s.Identity.Scheduled.Equal(nine) || s.Policy.Deliver || s.Identity.Queued || f.wrong != nil {
		t.Errorf("%+v, %+v, %v", s.Engine, s.Identity, f.wrong)
	}
	f.options = Options{Model: "big", Engine: "other"}
	if s = f.spec(); s.Engine.Model != "big" || s.Engine.Name != "other" || !slices.Equal(s.Identity.Typed, []string{runlog.TypedModel}) {
		t.Errorf("%+v, %+v", s.Engine, s.Identity)
	}
	f.entry = &answered{Entry: inbox.Entry{Arrived: nine.Add(time.Hour)}}
	if s = f.spec(); !s.Identity.Queued || !s.Identity.Scheduled.Equal(nine.Add(time.Hour)) {
		t.Errorf("%+v", s.Identity)
	}
	f.entry, f.job = nil, d.reminder("isolated: true")
	if s = f.spec(); !s.Identity.Scheduled.Equal(nine) {
		t.Errorf("%+v", s.Identity)
	}
	must(t, store.Replace(d.Home.ToolPolicy(), []byte("none: 1\n")))
	if s = f.spec(); f.wrong == nil {
		t.Error("tool-policy.yaml is wrong")
	}
}

// TestConversationsOfJobs: each mode has its conversation. A branch has main's tools and system prompt, the foreground main's model.
func TestConversationsOfJobs(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"background: true\nisolated: true": "conversation.Isolated", "background: true\nsession: persistent": "conversation.Routine",
		"background: true": "conversation.Branch", "": "*conversation.Main",
	} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		d.Settings.Main.Model, d.Settings.Main.Thinking = "mains", "adaptive"
		must(t, store.Replace(d.Home.Path("routines", "a.md"), []byte("---\nid: a\ncron: \"0 9 * * *\"\n"+lines+"\n---\nGo.\n")))
		s := (&fire{r: d.Runner, job: d.job("a"), claim: &claim{}}).spec()
		if got := fmt.Sprintf("%T", s.Conversation); got != want {
			t.Errorf("%q: %s", lines, got)
		}
		if s.Policy.Deliver != (want == "*conversation.Main") {
			t.Errorf("%q: delivered %v", lines, s.Policy.Deliver)
		}
		branch, main := want == "conversation.Branch", want == "*conversation.Main"
		if (len(s.Policy.Offered) > 0) != branch || (s.Policy.System != "") != (branch || main) || (s.Engine.Model == "mains") != main || main && s.Engine.Thinking != "adaptive" {
			t.Errorf("%q: %+v, %+v", lines, s.Policy, s.Engine)
		}
	}
}

// TestOwnRun: a run is of the job if it is its previous one, or its record says so.
func TestOwnRun(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	r := d.began(d.job("a"), nil)
	for _, c := range []struct {
		job, previous, run string
		own                bool
	}{
		{"a", "", r.ID, true}, {"b", "", r.ID, false}, {"b", "gone", "gone", true}, {"a", "", "", false}, {"a", "x", "20260302T090000.000Z-000000", false},
	} {
		if got := ownRun(d.Runs, c.job, runlog.Record{ID: c.previous})(c.run); got != c.own {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestRecordOfAFire: the record begins with what the session was told, if it is still the same session.
func TestRecordOfAFire(t *testing.T) {
	t.Parallel()
	for _, session := range []string{"s", "other"} {
		previous := runlog.Record{Compaction: runlog.CompactionDone, Told: runlog.Told{Session: "s"}, SessionAfter: "s", Turns: 1, Outcome: runlog.OK}
		f := &fire{job: job.Job{MaxChain: 3, ChainDepth: 1}, previous: previous}
		r := runlog.Record{SessionBefore: session}
		must(t, f.Begin(&r))
		if r.MaxChain != 3 || r.ChainDepth != 1 || r.Compaction != runlog.CompactionDone || (r.ToldBefore.Session == "s") != (previous.ToldUntil().Session == session) {
			t.Errorf("%s: %+v", session, r)
		}
	}
}

// TestPermit: what keeps a job from running, in this order.
func TestPermit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines string
		prep  func(d *fixture)
		owner bool
		want  error
	}{
		"fine":            {"", nil, false, nil},
		"off":             {"enabled: false", nil, true, run.ErrPaused},
		"paused":          {"", func(d *fixture) { must(d.t, d.Spend.Pause(d.t.Context(), time.Time{})) }, false, run.ErrPaused},
		"paused, by hand": {"", func(d *fixture) { must(d.t, d.Spend.Pause(d.t.Context(), time.Time{})) }, true, nil},
		"not approved":    {"allowed-tools: [WebSearch]", nil, false, run.ErrRefused},
		"subagent":        {"subagent: helper\nengine: script:x", func(d *fixture) { d.approve() }, false, run.ErrRefused},
		"subagent, other": {"subagent: helper", func(d *fixture) { d.approve() }, false, nil},
	} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute, c.lines)
		if c.prep != nil {
			c.prep(d)
		}
		f := &fire{r: d.Runner, job: d.job("a"), options: Options{Owner: c.owner}}
		if err := f.Permit(); !errors.Is(err, c.want) || (f.permitted != nil) != (err == nil) {
			t.Errorf("%s: %v, %v", name, err, f.permitted)
		}
	}
	for all, want := range map[bool]error{true: run.ErrPaused, false: nil} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		f := &fire{r: d.Runner, job: d.reminder("plain: true"), wrong: errLater}
		if all {
			must(t, d.Spend.PauseAll(t.Context(), time.Time{}))
		} else {
			must(t, d.Spend.Pause(t.Context(), time.Time{}))
		}
		if err := f.Permit(); !errors.Is(err, want) {
			t.Errorf("a plain reminder, all %v: %v", all, err)
		}
	}
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	if err := (&fire{r: d.Runner, job: d.job("a"), wrong: errLater}).Permit(); !errors.Is(err, errLater) {
		t.Errorf("tool-policy.yaml is wrong: %v", err)
	}
}

// TestDirsOfAJob: none lies in the data directory or holds a protected path; one that does not exist is no error.
func TestDirsOfAJob(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	secret := t.TempDir()
	d.Host.Secret = []string{secret}
	for dir, refused := range map[string]bool{
		t.TempDir(): false, string(d.Home): true, d.Home.Path("routines"): true, secret: true, "/none/of/this": false,
	} {
		if err := (Rules{d.Runner}).CheckDirs(job.Job{Dirs: []string{dir}}); errors.Is(err, run.ErrRefused) != refused {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// TestProgramBehindALink: an executable that the job may change is refused.
func TestProgramBehindALink(t *testing.T) {
	t.Parallel()
	for _, inside := range []bool{true, false} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		dir, other := t.TempDir(), t.TempDir()
		target := filepath.Join(map[bool]string{true: dir, false: other}[inside], "check")
		must(t, testkit.WriteFile(target, []byte("#!/bin/sh\n"), 0o700))
		must(t, os.MkdirAll(d.Home.Path("gates"), 0o700))
		must(t, os.Symlink(target, d.Home.Gate("check")))
		for _, background := range []bool{true, false} {
			j := job.Job{Gate: "check", Dirs: []string{"rw:" + dir}, Background: background}
			if err := (Rules{d.Runner}).CheckPrograms(j); errors.Is(err, run.ErrRefused) != inside {
				t.Errorf("inside %v, background %v: %v", inside, background, err)
			}
		}
	}
}

// TestBeginningOfAnEntry: what waits behind another event, is gone, or cannot be read does not begin.
func TestBeginningOfAnEntry(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	first := h.entry()
	second, err := h.Inbox.Find(h.accept("ci"))
	must(t, err)
	begun := func(e inbox.Entry, want error) {
		t.Helper()
		if r, err := (&answered{Entry: e, r: h.Runner}).begun(t.Context(), job.Job{Plain: true}); !errors.Is(err, want) || r.ID != "" {
			t.Errorf("%v, %+v; want %v", err, r, want)
		}
	}
	begun(first, nil)
	begun(second, ErrNotNext)
	for _, e := range []inbox.Entry{first, second} {
		must(t, os.MkdirAll(h.Home.Run(e.Run), 0o700))
	}
	must(t, h.Inbox.Claim(first))
	begun(first, inbox.ErrGone)
	begun(second, nil)
	must(t, h.Inbox.Claim(second))
	begun(second, inbox.ErrGone)
	must(t, os.RemoveAll(h.Home.Inbox()))
	must(t, os.WriteFile(h.Home.Inbox(), nil, 0o600))
	begun(second, syscall.ENOTDIR)
	e := answered{Entry: first, r: h.Runner}
	later := &run.Later{Limit: &spend.Limit{Key: "per-day", Passing: true}}
	must(t, e.giveBack(t.Context(), &runlog.Run{}, later))
	if got := h.causes(); len(got) != 0 {
		t.Errorf("the limit passes by itself: %q", got)
	}
	must(t, (*answered)(nil).giveBack(t.Context(), nil, nil))
	must(t, (*answered)(nil).take())
}

// TestStartNeedsItsLock: what cannot be started is looked at again.
func TestStartNeedsItsLock(t *testing.T) {
	t.Parallel()
	h := newHooks(t)
	h.entry()
	must(t, h.Spend.Pause(t.Context(), time.Time{}))
	if runs, again := h.start(); len(runs) > 0 || again != recheck {
		t.Errorf("paused: %q, %s", runs, again)
	}
	if r, err := New(h.Runner).FireEntry(t.Context(), h.accept("ci"), Options{Owner: true}); err == nil {
		t.Errorf("paused: %+v", r)
	}
	must(t, h.Spend.Resume(t.Context()))
	must(t, store.Replace(h.Home.State("pause.json"), []byte("{")))
	if again, err := (Entries{h.Runner}).Start(t.Context(), nil); err == nil || again != recheck {
		t.Errorf("the pause cannot be read: %s, %v", again, err)
	}
	must(t, os.Remove(h.Home.State("pause.json")))
	if again, err := (Entries{h.Runner}).Start(t.Context(), func(string) (process.ID, error) { return process.ID{}, errLater }); !errors.Is(err, errLater) || again != recheck {
		t.Errorf("the process does not start: %s, %v", again, err)
	}
	must(t, os.RemoveAll(h.Home.Webhooks()))
	must(t, os.WriteFile(h.Home.Webhooks(), nil, 0o600))
	if plan, err := (Entries{h.Runner}).Plan(t.Context()); err == nil || len(plan) > 0 {
		t.Errorf("the webhooks cannot be read: %+v, %v", plan, err)
	}
}

// TestReminderThatIsGone: a reminder whose file another process took before this one had the lock is not run, a routine is.
func TestReminderThatIsGone(t *testing.T) {
	t.Parallel()
	turns := 0
	d := newFixture(t, runtest.Turn(func(engine.Request) error { turns++; return nil }), time.Minute)
	d.reminder("isolated: true")
	for id, runs := range map[string]bool{"r": false, "a": true} {
		f, err := New(d.Runner).find(t.Context(), id, Options{})
		must(t, err)
		must(t, os.Remove(f.job.Path))
		turns = 0
		if _, err := f.respond(t.Context()); errors.As(err, new(*plaintext.Unknown)) == runs || (turns == 1) != runs {
			t.Errorf("%s: %d turns, %v", id, turns, err)
		}
	}
}
