package run_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// TestDutyToReport: an agent that owes a report is reminded. Without a report its run is unreported, and an update says so if the job
// always reports. The session is compacted as asked, unless the turn failed.
func TestDutyToReport(t *testing.T) {
	t.Parallel()
	reported, asks := runlog.Event{Type: runlog.Report, Text: "all"}, runlog.Event{Type: runlog.Ping, Tool: runlog.AskOwner, Text: "Which?"}
	dear := fmt.Errorf("%w: no more", engine.ErrMaxCost)
	type turn struct {
		events []runlog.Event
		err    error
	}
	for name, c := range map[string]struct {
		update  job.UpdateMode
		turns   []turn // the last one is repeated
		outcome runlog.Outcome
		told    bool  // an update says that there is no report
		is      error // what the error is as well
		compact bool
		asked   int // turns
	}{
		"reports":               {job.Always, []turn{{events: []runlog.Event{reported}}}, runlog.OK, false, nil, true, 1},
		"reports when reminded": {job.Always, []turn{{}, {events: []runlog.Event{reported}}}, runlog.OK, false, nil, true, 2},
		"never reports":         {job.Always, []turn{{}}, runlog.Unreported, true, nil, true, 3},
		"owes nothing":          {job.Freely, []turn{{}}, runlog.OK, false, nil, true, 1},
		"pings":                 {job.OnPing, []turn{{events: []runlog.Event{{Type: runlog.Ping}}}}, runlog.Unreported, false, nil, true, 3},
		"asks":                  {job.Always, []turn{{events: []runlog.Event{asks}}}, runlog.Waiting, false, nil, true, 1},
		"asks when reminded":    {job.Always, []turn{{}, {events: []runlog.Event{asks}}}, runlog.Waiting, false, nil, true, 2},
		"the reminder is dear":  {job.Always, []turn{{}, {err: dear}}, runlog.Unreported, true, engine.ErrMaxCost, true, 2},
		"the reminder fails":    {job.Always, []turn{{}, {err: errTest}}, runlog.Failed, false, errTest, false, 2},
		"the turn fails":        {job.Always, []turn{{err: errTest}}, runlog.Failed, false, errTest, false, 1},
		"the turn is dear":      {job.Always, []turn{{err: dear}}, runlog.Failed, false, engine.ErrMaxCost, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, compacted := 0, false
			e := plays()
			e.run = func(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) error {
				now := c.turns[min(asked, len(c.turns)-1)]
				asked++
				return errors.Join(all(sink, answered(append(now.events, runlog.Event{Type: runlog.CompactWish, Text: "Shorter."})...)...), now.err)
			}
			compact := e.compact
			e.compact = func(sink engine.Sink) error {
				compacted = true
				return compact(sink)
			}
			s, spec := newFixture(t, t.TempDir(), e), routine()
			spec.Policy.Update, spec.Duties = c.update, []run.Duty{run.Report}
			got, err := s.Run(t.Context(), spec)
			if got.Outcome != c.outcome || c.is != nil && !errors.Is(err, c.is) || asked != c.asked || compacted != c.compact {
				t.Errorf("%s after %d turns, compacted %v: %v", got.Outcome, asked, compacted, err)
			}
			pending, err := s.Updates.Peek(t.Context())
			if told := len(pending) > 0; err != nil || told != c.told || told && pending[0].Message != "a ran but did not report what it did." {
				t.Errorf("told %+v, %v", pending, err)
			}
		})
	}
}

// TestCompactionThatFails: a compaction that the limit of the run does not allow is noted, and the run is ok; any other error is the run's.
func TestCompactionThatFails(t *testing.T) {
	t.Parallel()
	for fault, want := range map[error]runlog.Outcome{nil: runlog.OK, engine.ErrMaxCost: runlog.OK, errTest: runlog.Failed} {
		e := plays(answered(runlog.Event{Type: runlog.CompactWish, Text: "Shorter."})...)
		if fault != nil {
			e.compact = func(engine.Sink) error { return fault }
		}
		s := newFixture(t, t.TempDir(), e)
		got, err := s.Run(t.Context(), routine())
		if got.Outcome != want || want == runlog.Failed && !errors.Is(err, fault) || got.Compactions != map[bool]int{true: 1}[fault == nil] {
			t.Errorf("%v: %s with %d compactions, %v", fault, got.Outcome, got.Compactions, err)
		}
		failed := false
		for event, err := range s.Runs.Events(got.ID, new(int)) {
			if failed = failed || event.Type == runlog.CompactFailed && event.Text == engine.ErrMaxCost.Error(); err != nil {
				t.Error(err)
			}
		}
		if failed != errors.Is(fault, engine.ErrMaxCost) {
			t.Errorf("%v: the failure is noted: %v", fault, failed)
		}
	}
}

// TestCompactNow: the owner compacts a session by instructions in place of a turn, if there is one.
func TestCompactNow(t *testing.T) {
	t.Parallel()
	var steps []string
	e := &actor{
		run: func(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) error {
			steps = append(steps, "turn")
			return all(sink, answered()...)
		},
		compact: func(sink engine.Sink) error {
			steps = append(steps, "compact")
			return sink(runlog.Event{Type: runlog.Compacted, Session: "s2", Parent: "s"})
		},
	}
	s := newFixture(t, t.TempDir(), e)
	spec := routine()
	spec.Conversation = board{dir: s.Home.State("boards"), topic: "tea"}
	for i, want := range []runlog.Outcome{runlog.Failed, runlog.OK, runlog.OK} {
		spec.Compact = map[bool]string{true: "", false: "Shorter."}[i == 1]
		if got, err := s.Run(t.Context(), spec); got.Outcome != want {
			t.Errorf("%d: %s, %v", i, got.Outcome, err)
		}
	}
	if !slices.Equal(steps, []string{"turn", "compact"}) {
		t.Errorf("the engine did %q", steps)
	}
}
