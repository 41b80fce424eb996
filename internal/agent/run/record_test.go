package run_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
)

// limited is an engine that promises less than all.
type limited struct {
	*actor

	promises engine.Guarantees
}

func (l limited) Guarantees(string) engine.Guarantees { return l.promises }

// TestPromisesOfTheEngine: the record says what an engine promises that does not promise all, and a run that needs more fails.
func TestPromisesOfTheEngine(t *testing.T) {
	t.Parallel()
	less := engine.Complete()
	less.Turns = false
	for name, c := range map[string]struct {
		promises engine.Guarantees
		needs    string
		listed   bool
		outcome  runlog.Outcome
	}{
		"all": {engine.Complete(), "x", false, runlog.OK}, "less": {less, "", true, runlog.OK}, "too little": {less, "x", false, runlog.Failed},
	} {
		s, spec := newFixture(t, t.TempDir(), limited{plays(answered()...), c.promises}), routine()
		spec.Engine.Needs.Turns = c.needs
		got, err := s.Run(t.Context(), spec)
		if got.Outcome != c.outcome || (len(got.Guarantees) > 0) != c.listed || (err != nil) != (c.outcome == runlog.Failed) {
			t.Errorf("%s: %s, %q, %v", name, got.Outcome, got.Guarantees, err)
		}
	}
}

// TestRecordOfASpec: the record has what the Spec says of the run, in the zone of the settings.
func TestRecordOfASpec(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 3600)
	full := func(spec *run.Spec) {
		spec.Policy.Dirs = []policy.Root{{Dir: "/a"}, {Dir: "/b", Writable: true}}
		spec.Policy.Seal = run.SealWish{On: true, Offline: true}
		spec.Policy.Mode, spec.Observe.Permit = policy.AskOwner, func(context.Context, runlog.Event) bool { return true }
		spec.Identity.Typed, spec.Engine.Thinking = []string{runlog.TypedThinking}, "high"
		spec.Identity.Scheduled, spec.Identity.Name = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC), ""
		spec.Engine.Model, spec.Policy.Tools = "opus", []string{"Read(./**)"}
	}
	for name, c := range map[string]struct {
		change func(*run.Spec)
		want   string
	}{
		"nothing": {func(*run.Spec) {}, "costly cheap   [] false   [] <nil>"},
		"all":     {full, "costly opus on none [/a rw:/b] true default high [Read(./**)] 2026-03-02 09:00:00 +0100 east"},
		"plain":   {func(s *run.Spec) { full(s); s.Plain = true }, "  on none [/a rw:/b] true default high [] 2026-03-02 09:00:00 +0100 east"},
		"nobody to ask": {func(s *run.Spec) { full(s); s.Observe.Permit = nil },
			"costly opus on none [/a rw:/b] false default high [Read(./**)] 2026-03-02 09:00:00 +0100 east"},
		"nobody is asked": {func(s *run.Spec) { full(s); s.Policy.Mode = policy.DontAsk },
			"costly opus on none [/a rw:/b] false  high [Read(./**)] 2026-03-02 09:00:00 +0100 east"},
		"not typed": {func(s *run.Spec) { full(s); s.Identity.Typed = nil },
			"costly opus on none [/a rw:/b] true default  [Read(./**)] 2026-03-02 09:00:00 +0100 east"},
	} {
		s, spec := newFixture(t, t.TempDir(), plays()), routine()
		s.Zone, s.Settings.Model = zone, func(string) string { return "cheap" }
		c.change(&spec)
		r, err := s.Skip(t.Context(), spec, "no")
		got := fmt.Sprint(r.Engine, " ", r.Model, " ", r.Seal, " ", r.Network, " ", r.Dirs, " ", r.MayAsk, " ", r.Permissions, " ", r.Thinking, " ", r.Tools, " ", r.Scheduled)
		if got != c.want || err != nil || r.Outcome != runlog.Skipped || r.Error != "no" || !lock.Free(s.Home.RunLock(r.ID)) {
			t.Errorf("%s: %q, want %q; %s, %q, %v", name, got, c.want, r.Outcome, r.Error, err)
		}
		if r.Deadline == nil || !r.Deadline.Equal(s.now.Add(time.Hour)) {
			t.Errorf("%s: deadline %v", name, r.Deadline)
		}
	}
}

// TestInputOfARun: the prompt says what the record and the clock add to the task: that the run is late, what its budget is, what became of
// its session, and the files that were piped in.
func TestInputOfARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(s *fixture, spec *run.Spec)
		has     string
		without string
	}{
		"late":      {func(s *fixture, spec *run.Spec) { spec.Identity.Scheduled = s.now.Add(-time.Hour) }, "late: ", ""},
		"not late":  {func(s *fixture, spec *run.Spec) { spec.Identity.Scheduled = s.now }, "", "late: "},
		"budget":    {func(_ *fixture, spec *run.Spec) { spec.Input.Task.AllowPing = true }, "budget: 5/5", ""},
		"no budget": {func(*fixture, *run.Spec) {}, "", "budget: 5/5"},
		"foreground": {func(_ *fixture, spec *run.Spec) {
			spec.Input.Task.AllowPing, spec.Input.Task.Background = true, false
		}, "", "budget: 5/5"},
		"compacted": {func(_ *fixture, spec *run.Spec) {
			spec.Input.Task.Persistent = true
			spec.Origin = &caller{begin: func(r *runlog.Record) error { r.Compaction = runlog.CompactionDone; return nil }}
		}, "was compacted", ""},
		"compaction failed": {func(_ *fixture, spec *run.Spec) {
			spec.Input.Task.Persistent = true
			spec.Origin = &caller{begin: func(r *runlog.Record) error { r.Compaction = runlog.CompactionFailed; return nil }}
		}, "not carried out", ""},
		"not compacted": {func(*fixture, *run.Spec) {}, "", "compact"},
		"piped": {func(s *fixture, spec *run.Spec) {
			spec.Input.Piped.Files = []engine.Attachment{{Name: "x.txt", Type: "text/plain", Path: s.Home.Path("routines", "a.md")}}
		}, "x.txt", ""},
	} {
		var said string
		e := plays()
		e.run = func(_ context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) error {
			said = r.Input.Prompt
			return all(sink, answered()...)
		}
		s, spec := newFixture(t, t.TempDir(), e), routine()
		c.change(s, &spec)
		if got, err := s.Run(t.Context(), spec); err != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if !strings.Contains(said, c.has) || c.without != "" && strings.Contains(said, c.without) {
			t.Errorf("%s: the prompt is\n%s", name, said)
		}
	}
}

// TestRequestOfARun: the engine gets the slot, the locks, what is left to spend and where its requests are kept; those of a private
// conversation are not.
func TestRequestOfARun(t *testing.T) {
	t.Parallel()
	var got engine.Request
	var passed atomic.Int64 // seconds
	e := plays()
	e.run = func(_ context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) error {
		got = r
		if r.Run.Sent != nil {
			kept := r.Run.Sent([]byte(`{"model":"m"}`))
			passed.Store(2)
			kept.Begun()
			passed.Store(5)
			kept.Answered(request.Answer{Status: 200, Body: []byte("{}")})
		}
		return all(sink, answered()...)
	}
	s, spec := newFixture(t, t.TempDir(), e), routine()
	s.Requests.Disk.Now = func() time.Time { return s.now.Add(time.Duration(passed.Load()) * time.Second) }
	guard, err := lock.TryGuard(s.Home.JobLock("a"))
	if err != nil {
		t.Fatal(err)
	}
	spec.Identity.Guard, spec.Identity.Scheduled, spec.Identity.File = guard, s.now, []byte("file")
	spec.Input.Piped.Files = []engine.Attachment{{Name: "x", Type: "text/plain", Path: s.Home.Path("routines", "a.md")}, {Name: "y", Type: "image/png", Path: s.Home.Path("routines", "a.md")}}
	r, err := s.Run(t.Context(), spec)
	if err != nil || !got.Run.Slot.Equal(s.now) || len(got.Run.Locks) != 2 || got.Limits.MaxCost != 1 || got.Limits.Reserved != 1 || got.Limits.Raise == nil {
		t.Errorf("%+v, %v", got, err)
	}
	if len(got.Input.Attachments) != 1 || got.Input.Attachments[0].Name != "y" || got.Scope.Root != string(s.Home) || !got.Input.SystemOnly {
		t.Errorf("%+v", got.Input)
	}
	sent, err := os.ReadFile(s.Home.Requests(r.ID))
	if err != nil || strings.Count(string(sent), "\n") != 2 || !strings.Contains(string(sent), `"job":true`) {
		t.Errorf("kept %s, %v", sent, err)
	}
	came, err := os.ReadFile(s.Home.Answers(r.ID))
	if err != nil || !strings.Contains(string(came), `"to":1,"status":200,"first_ms":2000,"ms":5000`) {
		t.Errorf("kept %s, %v", came, err)
	}
	again := question("", false)
	again.Engine.Transcribe = false
	again.Conversation = conversation.Question{Discard: true}
	if r, err = s.Run(t.Context(), again); err != nil || got.Run.Sent != nil || !got.Run.Slot.IsZero() || len(got.Run.Locks) != 1 {
		t.Errorf("a private one: %+v, %v", got.Run, err)
	}
	if _, err := os.Stat(s.Home.Requests(r.ID)); err == nil {
		t.Error("the requests of a private conversation are kept")
	}
}
