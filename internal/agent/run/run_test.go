package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/runlog"
)

var errTest = errors.New("what the test wants")

// closed is a conversation that cannot be opened from the nth time on.
type closed struct {
	conversation.Isolated

	opened *int
	from   int
}

func (c closed) Open(context.Context) (conversation.History, error) {
	if *c.opened++; *c.opened >= c.from {
		return conversation.History{}, errTest
	}
	return conversation.History{}, nil
}

// TestErrorsOfARun: an error before the record means that nothing ran and nothing is left; each later one ends the run, and its record
// says so.
func TestErrorsOfARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(s *fixture, spec *run.Spec)
		want    error
		outcome runlog.Outcome // "": there is no record
	}{
		"no engine": {func(s *fixture, _ *run.Spec) { s.Settings.Engine = "" }, run.ErrNoEngine, ""},
		"no engine, but refused": {func(s *fixture, spec *run.Spec) {
			s.Settings.Engine, spec.Origin = "", &caller{permit: run.Refuse("no")}
		}, run.ErrRefused, runlog.Refused},
		"another time":        {func(_ *fixture, spec *run.Spec) { spec.Engine.Moved = true }, run.ErrMovedClock, ""},
		"no id":               {func(s *fixture, _ *run.Spec) { s.Random = iotest.ErrReader(errTest) }, errTest, ""},
		"closed conversation": {func(_ *fixture, spec *run.Spec) { spec.Conversation = closed{opened: new(int), from: 1} }, errTest, ""},
		"origin begins": {func(_ *fixture, spec *run.Spec) {
			spec.Origin = &caller{begin: func(*runlog.Record) error { return errTest }}
		}, errTest, ""},
		"conversation closed meanwhile": {func(_ *fixture, spec *run.Spec) {
			spec.Conversation = closed{opened: new(int), from: 2}
		}, errTest, runlog.Failed},
		"paused": {func(_ *fixture, spec *run.Spec) {
			spec.Origin = &caller{permit: &run.Refusal{Kind: run.ErrPaused}}
		}, run.ErrPaused, runlog.Paused},
		"no seal": {func(s *fixture, _ *run.Spec) {
			s.Host.Sealing = run.Sealing{Mode: config.SealOn, Check: func() (int, error) { return 0, errTest }}
		}, run.ErrRefused, runlog.Refused},
		"engine": {func(s *fixture, _ *run.Spec) {
			s.Engines = func(string) (engine.Engine, error) { return nil, errTest }
		}, errTest, runlog.Failed},
		"engine that lacks something": {func(_ *fixture, spec *run.Spec) { spec.Engine.Needs.Turns = "its file" }, nil, runlog.OK},
		"origin prepares": {func(_ *fixture, spec *run.Spec) {
			spec.Origin = &caller{prepare: func(in prompt.Input) (prompt.Input, error) { return in, errTest }}
		}, errTest, runlog.Failed},
		"nothing to do": {func(_ *fixture, spec *run.Spec) {
			spec.Origin = &caller{prepare: func(in prompt.Input) (prompt.Input, error) { return in, run.ErrGated }}
		}, nil, runlog.Gated},
		"origin prepares a reminder": {func(_ *fixture, spec *run.Spec) {
			spec.Plain = true
			spec.Origin = &caller{prepare: func(in prompt.Input) (prompt.Input, error) { return in, errTest }}
		}, errTest, runlog.Failed},
		"origin completes": {func(_ *fixture, spec *run.Spec) {
			spec.Origin = &caller{complete: func(*engine.Request) error { return errTest }}
		}, errTest, runlog.Failed},
		"file that is not there": {func(s *fixture, spec *run.Spec) {
			spec.Input.Piped.Files = []engine.Attachment{{Name: "x", Type: "text/plain", Path: s.Home.Path("none")}}
		}, nil, runlog.Failed},
		"duty": {func(_ *fixture, spec *run.Spec) {
			spec.Duties = []run.Duty{func(context.Context, *tools.Set, *conversation.Turn) error { return errTest }}
		}, errTest, runlog.Failed},
		"nothing to compact": {func(_ *fixture, spec *run.Spec) { spec.Compact = "Shorter." }, nil, runlog.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, spec := newFixture(t, t.TempDir(), plays(answered()...)), routine()
			guard, err := lock.TryGuard(s.Home.JobLock("a"))
			if err != nil {
				t.Fatal(err)
			}
			spec.Identity.Guard = guard
			c.change(s, &spec)
			got, err := s.Run(t.Context(), spec)
			if got.Outcome != c.outcome || c.want != nil && !errors.Is(err, c.want) || c.outcome == runlog.OK && err != nil {
				t.Fatalf("%s, %v, want %s, %v", got.Outcome, err, c.outcome, c.want)
			}
			stored, err := s.Runs.Load(got.ID)
			if c.outcome != "" && (err != nil || stored.Outcome != c.outcome || !stored.Done() || !lock.Free(s.Home.JobLock("a"))) {
				t.Errorf("on disk: %s, %v", stored.Outcome, err)
			}
			for r := range s.Runs.List() {
				if c.outcome == "" {
					t.Errorf("%s is left", r.ID)
				}
			}
			if s.reserved(t) != 0 || len(s.warned) > 0 {
				t.Errorf("reserved %v, warned %s", s.reserved(t), strings.Join(s.warned, "; "))
			}
		})
	}
}
