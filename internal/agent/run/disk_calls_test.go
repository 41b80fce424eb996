package run_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
)

func damagedCalls() map[string]damaged {
	runs := func(change func(*fixture, *run.Spec)) func(*testing.T, *fixture) (any, error) {
		return func(t *testing.T, s *fixture) (any, error) {
			spec := routine()
			change(s, &spec)
			return s.Run(t.Context(), spec)
		}
	}
	server, used := notify.Cause{Kind: notify.Server, Subject: "good"}, runlog.Event{Type: runlog.ToolResult, Tool: "mcp__good__x", ToolID: "1"}
	refused := func(err error) bool { return errors.Is(err, run.ErrRefused) }
	later := func(err error) bool { return errors.As(err, new(*run.Later)) }
	return map[string]damaged{
		"a turn":           {of: ofRuns, engine: plays(answered()...), call: runs(func(*fixture, *run.Spec) {})},
		"a plain reminder": {call: runs(func(_ *fixture, s *run.Spec) { s.Plain = true })},
		"a refusal":        {call: runs(func(_ *fixture, s *run.Spec) { s.Origin = &caller{permit: run.Refuse("no")} }), ends: refused},
		"taken back":       {prep: reserveAll, call: takenBack, ends: later},
		"continued": {of: ofRuns, engine: plays(answered()...), prep: wait, call: runs(func(s *fixture, spec *run.Spec) {
			spec.Identity.Run, spec.Identity.Again = s.begun.Run().ID, true
			spec.Conversation = conversation.Resumed{Conversation: spec.Conversation, Session: "s"}
			then := s.begun.Run().Record
			spec.Origin = &caller{begin: func(r *runlog.Record) error {
				*r, r.Continued, r.Finished, r.Outcome, r.Settled = then, 1, nil, "", then.Cost
				return nil
			}}
		})},
		"compacted": {of: ofRuns, engine: plays(), call: runs(func(_ *fixture, s *run.Spec) {
			s.Compact, s.Conversation = "Shorter.", kept{history: conversation.History{Session: "s"}}
		})},
		"skipped": {prep: lockJob, call: func(t *testing.T, s *fixture) (any, error) {
			spec := routine()
			spec.Identity.Guard = s.guard
			return s.Skip(t.Context(), spec, "no")
		}},
		"abandoned": {prep: wait, call: func(t *testing.T, s *fixture) (any, error) {
			spec := routine()
			spec.Identity.Run = s.begun.Run().ID
			return s.Abandon(t.Context(), spec, runlog.Expired, "no answer", "It has ended.")
		}},
		"work": {call: func(t *testing.T, s *fixture) (any, error) {
			return run.Work(t.Context(), s.Runner, runlog.Record{}, 1, func(ctx context.Context, r *runlog.Run, raise run.Raise) error {
				_, err := raise(ctx, 1, 1)
				return errors.Join(err, r.Event(ctx, runlog.Event{Type: runlog.UsageEvent, Cost: 0.5, Usage: &runlog.Usage{In: 1}}))
			})
		}},
		"duties, requests":     {of: ofRequests, engine: dutiful(), prep: owing, call: carriesOut},
		"duties, ledger":       {of: ofLedger, engine: dutiful(), prep: owing, call: carriesOut},
		"duties, events":       {of: ofEvents, engine: dutiful(), prep: owing, call: carriesOut},
		"delivery":             {of: ofEvents, prep: troubled(server, used), call: reports},
		"a failed server":      {of: ofLedger, prep: troubled(server, runlog.Event{Type: runlog.ServerFailed, Tool: "bad", Text: "not there"}), call: reports},
		"a server works again": {of: ofLedger, prep: troubled(server, used), call: reports},
		"a job works again":    {of: ofLedger, prep: troubled(notify.Cause{Kind: notify.Job, Subject: "a"}), call: reports},
		"a model works again":  {of: ofLedger, prep: troubled(notify.Cause{Kind: notify.Model, Subject: "one"}), call: reports},
		"a transcript":         {of: ofSessions, engine: plays(answered()...), call: transcribes("")},
		"a transcript goes on": {of: ofSessions, engine: plays(answered()...), call: transcribes("s"), prep: func(t *testing.T, s *fixture) {
			if _, err := transcribes("")(t, s); err != nil {
				t.Fatal(err)
			}
		}},
		"preview":  {call: previews, prep: typesTask},
		"rebuild":  {call: rebuilds, prep: typesTask},
		"patterns": {call: patterns},
		"pause":    {prep: paused, call: pauses},
	}
}

func ofRuns(s *fixture) string     { return s.Home.State("runs") }
func ofSessions(s *fixture) string { return s.Home.Sessions() }
func ofLedger(s *fixture) string   { return s.Home.State("ledger") }
func ofEvents(s *fixture) string   { return s.Home.Run(s.begun.Run().ID, "events.jsonl") }
func ofRequests(s *fixture) string { return s.Home.Requests(s.begun.Run().ID) }

// lockJob takes the lock of the job, in which its last run is noted.
func lockJob(t *testing.T, s *fixture) {
	t.Helper()
	var err error
	if s.guard, err = lock.TryGuard(s.Home.JobLock("a")); err == nil {
		err = s.guard.Note("before\n")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reserveAll reserves all that may be spent in a day for another run.
func reserveAll(t *testing.T, s *fixture) {
	t.Helper()
	lockJob(t, s)
	s.Spend.Limits.PerDay = 1
	spec := routine()
	s.begin(t, spec)
	if _, err := s.Spend.Reserve(t.Context(), spend.Claim{Run: s.begun.Run().ID, Most: 1}, nil); err != nil {
		t.Fatal(err)
	}
}

func takenBack(t *testing.T, s *fixture) (any, error) {
	spec := routine()
	spec.Identity.Guard = s.guard
	r, err := s.Run(t.Context(), spec)
	s.guard.Release()
	s.begun.Release()
	return r, err
}

// wait runs a run that asks the owner a question.
func wait(t *testing.T, s *fixture) {
	t.Helper()
	then := s.Engines
	s.Engines = engines(plays(answered(runlog.Event{Type: runlog.Ping, Tool: runlog.AskOwner, Text: "Which?"})...))
	s.begin(t, routine())
	defer s.begun.Release()
	cause := s.begun.CarryOut(t.Context())
	s.begun.Conclude(t.Context(), cause)
	s.begun.Report(t.Context())
	if err := s.begun.Finish(t.Context()); err != nil || s.begun.Run().Outcome != runlog.Waiting {
		t.Fatal(s.begun.Run().Outcome, err)
	}
	s.Engines = then
}

// transcribes runs a question whose answer is kept as a transcript.
func transcribes(session string) func(*testing.T, *fixture) (any, error) {
	return func(t *testing.T, s *fixture) (any, error) { return s.Run(t.Context(), question(session, false)) }
}

// dutiful is an engine that has its requests kept, and raises its reservation.
func dutiful() *actor {
	a := plays()
	a.run = func(ctx context.Context, r engine.Request, _ engine.Tools, sink engine.Sink) error {
		sent := r.Run.Sent([]byte(`{"model":"m"}`))
		_, raised := r.Limits.Raise(ctx, 0.5, 1)
		err := all(sink, answered(runlog.Event{Type: runlog.CompactWish, Text: "Shorter."})...)
		sent.Answered(request.Answer{})
		return errors.Join(raised, err)
	}
	return a
}

// owing begins a run that owes a report.
func owing(t *testing.T, s *fixture) {
	t.Helper()
	spec := routine()
	spec.Policy.Update, spec.Duties = job.Always, []run.Duty{run.Report}
	spec.Identity.Scheduled, spec.Identity.File = s.now, []byte("file")
	spec.Input.Task.AllowPing = true
	s.begin(t, spec)
}

func carriesOut(t *testing.T, s *fixture) (any, error) {
	err := s.begun.CarryOut(t.Context())
	if err != nil && err.Error() == "the agent did not report" {
		err = nil
	}
	s.begun.Release()
	return nil, err
}

// troubled begins a run in which events occur while a cause is open.
func troubled(cause notify.Cause, during ...runlog.Event) func(*testing.T, *fixture) {
	return func(t *testing.T, s *fixture) {
		t.Helper()
		cause.Text = "it fails"
		if _, err := s.Notify().Open(t.Context(), cause); err != nil {
			t.Fatal(err)
		}
		s.Settings.Models = func() model.Table { return model.Table{} }
		spec := routine()
		spec.Policy.Deliver, spec.Sender = true, &wall{}
		s.begin(t, spec)
		for _, e := range answered(append(during, runlog.Event{Type: runlog.UpdatesPopped, Count: 1}, runlog.Event{Type: runlog.Session, Session: "s", Model: "one"})...) {
			if err := s.begun.Run().Event(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func reports(t *testing.T, s *fixture) (any, error) {
	s.begun.Conclude(t.Context(), nil)
	s.begun.Report(t.Context())
	s.begun.Deliver(t.Context())
	err := s.begun.Finish(t.Context())
	s.begun.Release()
	return s.begun.Run().Record, err
}

// typesTask writes a file that is piped into a run.
func typesTask(t *testing.T, s *fixture) {
	t.Helper()
	if err := os.WriteFile(s.Home.Path("piped.txt"), []byte("piped"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func typed(s *fixture) run.Spec {
	spec := routine()
	spec.Input.Task.AllowPing = true
	spec.Input.Piped.Files = []engine.Attachment{{Name: "piped.txt", Type: "text/plain", Path: s.Home.Path("piped.txt")}}
	return spec
}

func previews(t *testing.T, s *fixture) (any, error) {
	plan, err := s.Preview(t.Context(), typed(s), func(in prompt.Input) prompt.Input { return in })
	return plan, err
}

func rebuilds(_ *testing.T, s *fixture) (any, error) {
	a, err := run.Rebuild(s.Runner, typed(s), runlog.Record{Started: s.now}, prompt.Past{})
	return a.Prompt.Text(), err
}

func patterns(_ *testing.T, s *fixture) (any, error) {
	own, main, err := s.Patterns(true)
	return [][]string{own, main}, err
}

// paused pauses everything for an hour.
func paused(t *testing.T, s *fixture) {
	t.Helper()
	if err := s.Spend.Pause(t.Context(), s.now.Add(1)); err != nil {
		t.Fatal(err)
	}
}

func pauses(_ *testing.T, s *fixture) (any, error) {
	refused := &run.Refusal{}
	return errors.As(s.Paused(false), &refused), nil
}
