package fire

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
)

// TestGive: an answer is taken by a run that waits for one, or is about to, and by no other.
func TestGive(t *testing.T) {
	t.Parallel()
	asks := runlog.Event{Type: runlog.Ping, Tool: runlog.AskOwner, Text: "Which?"}
	holds := func(d *fixture, r *runlog.Run) {
		held, err := d.Runs.Hold(r.ID)
		must(d.t, err)
		d.t.Cleanup(held.Leave)
	}
	for name, c := range map[string]struct {
		prep func(d *fixture, r *runlog.Run)
		err  string // "": it is taken
	}{
		"waits": {func(d *fixture, r *runlog.Run) { must(d.t, r.Finish(runlog.Waiting, "")) }, ""},
		"is about to": {func(d *fixture, r *runlog.Run) {
			holds(d, r)
			must(d.t, r.Event(d.t.Context(), asks))
		}, ""},
		"was killed":  {func(d *fixture, _ *runlog.Run) { d.Host.Process = func() runlog.Process { return runlog.Process{} } }, "it has ended (interrupted) and waits for no answer"},
		"has ended":   {func(d *fixture, r *runlog.Run) { must(d.t, r.Finish(runlog.Failed, "")) }, "it has ended (failed) and waits for no answer"},
		"in progress": {holds, "it is in progress and waits for no answer"},
	} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		r := d.began(d.job("a"), nil)
		must(t, d.Questions.Ask(t.Context(), question.Question{Run: r.ID, Job: "a", Text: "Which?", Asked: d.now, Expires: d.now.Add(time.Hour)}))
		c.prep(d, r)
		q, err := Answers{d.Runner}.Give(t.Context(), r.ID, " red ")
		if c.err == "" && (q.Answer != "red" || err != nil) || c.err != "" && (err == nil || !strings.HasSuffix(err.Error(), c.err)) {
			t.Errorf("%s: %+v, %v", name, q, err)
		}
	}
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	r := d.waits(nil)
	must(t, instead(d.Home.Run(r.ID, "events.jsonl")))
	if q, err := (Answers{d.Runner}).Give(t.Context(), r.ID, "x"); err == nil {
		t.Errorf("its events cannot be read: %+v", q)
	}
	if _, err := (Answers{d.Runner}).Give(t.Context(), "20260302T090000.000Z-000000", "x"); !errors.As(err, new(*plaintext.Unknown)) {
		t.Error(err)
	}
}

// TestContinue: a run goes on with its answer in what is left of its limits, ends if nobody can answer any more or its job is gone, and
// keeps waiting while it may not run.
func TestContinue(t *testing.T) {
	t.Parallel()
	answer := func(q *question.Question) { q.Answer, q.Left = "blue", 3*time.Minute }
	for name, c := range map[string]struct {
		question func(q *question.Question)
		prep     func(d *fixture)
		outcome  runlog.Outcome
		err      string
		slot     string
		asks     bool // the question is still there
		told     string
	}{
		"answered":     {answer, nil, runlog.OK, "", "ok", false, ""},
		"not yet":      {nil, nil, runlog.Waiting, "its question has no answer yet", "waiting", true, ""},
		"expired":      {func(q *question.Question) { q.Expires = q.Asked }, nil, runlog.Expired, "", "expired", true, "nobody answered its question"},
		"job is gone":  {answer, func(d *fixture) { must(d.t, os.Remove(d.Home.Path("routines", "a.md"))) }, runlog.Refused, "", "refused", false, "its job no longer exists"},
		"job is bad":   {answer, func(d *fixture) { d.write("none: 1") }, runlog.Refused, "", "refused", false, "its job no longer exists"},
		"elsewhere":    {answer, func(d *fixture) { d.write("host: server"); d.Host.Name = "laptop" }, runlog.Waiting, "host: server runs it", "waiting", true, ""},
		"not approved": {answer, func(d *fixture) { d.write("allowed-tools: [WebSearch]") }, runlog.Waiting, "not approved", "waiting", true, ""},
		"paused":       {answer, func(d *fixture) { must(d.t, d.Spend.Pause(d.t.Context(), time.Time{})) }, runlog.Waiting, "paused", "waiting", true, ""},
		"at a limit":   {answer, func(d *fixture) { must(d.t, d.Spend.Settle(d.t.Context(), "another", 5)) }, runlog.Waiting, "per-day", "waiting", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []engine.Request
			d := newFixture(t, runtest.Answering{Asked: &asked}, time.Minute)
			r := d.waits(c.question)
			if c.prep != nil {
				c.prep(d)
			}
			done, err := Answers{d.Runner}.Continue(t.Context(), r.ID, run.Observer{})
			if done.Outcome != c.outcome || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s, %v", done.Outcome, err)
			}
			kept, err := d.Runs.Load(r.ID)
			if err != nil || kept.Outcome != c.outcome {
				t.Errorf("recorded as %s, %v", kept.Outcome, err)
			}
			d.claimed(r.ID, c.slot)
			if _, err := d.Questions.Load(r.ID); (err == nil) != c.asks {
				t.Errorf("its question: %v", err)
			}
			if n := len(asked); (n == 1) != (c.outcome == runlog.OK) || n == 1 && (!strings.Contains(asked[0].Input.Prompt, "blue") || kept.Continued != 1) {
				t.Errorf("asked %+v, continued %d", asked, kept.Continued)
			}
			page, err := d.Notices.Read()
			if text := page.Causes["news "+r.ID].Text; err != nil || c.told == "" && text != "" || !strings.Contains(text, c.told) {
				t.Errorf("told %q, %v", text, err)
			}
			if refused := name == "not approved" || name == "at a limit"; refused != (len(d.causes()) == 1) {
				t.Errorf("causes %q", d.causes())
			}
			if !lock.Free(d.Home.JobLock("a")) {
				t.Error("the job's lock is left")
			}
		})
	}
}

// TestContinuedCosts: what a part that was cut off has cost is settled before the run goes on, once.
func TestContinuedCosts(t *testing.T) {
	t.Parallel()
	session := runlog.Event{Type: runlog.Session, Session: "s"}
	cost := runlog.Event{Type: runlog.UsageEvent, Cost: 0.25, Usage: &runlog.Usage{}}
	for name, c := range map[string]struct {
		events    []runlog.Event
		settled   float64
		accounted bool
		spent     float64
	}{
		"a part":        {[]runlog.Event{session, cost}, 0, true, 0.75},
		"a request":     {[]runlog.Event{cost}, 0, true, 0.75},
		"settled part":  {[]runlog.Event{cost}, 0.1, true, 0.65},
		"not accounted": {[]runlog.Event{cost}, 0, false, 0.5},
		"nothing":       {nil, 0, true, 0.5},
	} {
		d := newFixture(t, runtest.Plays(nil, session, runlog.Event{Type: runlog.UsageEvent, Cost: 0.5, Usage: &runlog.Usage{}}), time.Minute)
		r := d.waits(func(q *question.Question) { q.Answer = "blue" })
		must(t, r.Update(func(r *runlog.Record) { r.Accounted, r.Settled = c.accounted, c.settled }))
		for _, e := range c.events {
			must(t, r.Event(t.Context(), e))
		}
		done, err := Answers{d.Runner}.Continue(t.Context(), r.ID, run.Observer{})
		totals, totalsErr := d.Spend.Totals()
		if done.Outcome != runlog.OK || errors.Join(err, totalsErr) != nil || math.Abs(totals.Today.Spent-c.spent) > 1e-9 || totals.Today.Reserved != 0 {
			t.Errorf("%s: %s, %v; %+v", name, done.Outcome, errors.Join(err, totalsErr), totals.Today)
		}
	}
}

// TestQuestionsCannotBeRead: a fire runs without them, with a warning.
func TestQuestionsCannotBeRead(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	must(t, os.MkdirAll(d.Home.State(), 0o700))
	must(t, os.WriteFile(d.Home.Questions(), nil, 0o600))
	warned := d.warns()
	if f := (&fire{r: d.Runner}); len(f.questions()) > 0 || len(*warned) != 1 {
		t.Errorf("%q", *warned)
	}
}

// TestQuestionOfAKilledProcess: it is sent again, or is an update where nothing can be sent, and is noted as sent.
func TestQuestionOfAKilledProcess(t *testing.T) {
	t.Parallel()
	for _, configured := range []bool{true, false} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		d.Outbox.Waits = configured
		r := d.waits(nil)
		q, err := d.Questions.Load(r.ID)
		must(t, err)
		must(t, Answers{d.Runner}.AskAgain(t.Context(), q))
		if q, err = d.Questions.Load(r.ID); !q.Sent || err != nil {
			t.Errorf("%+v, %v", q, err)
		}
		text, err := os.ReadFile(filepath.Join(d.Home.Outbox(), q.Message+".jsonl"))
		if told := len(d.told()) == 1; (err == nil) != configured || told == configured || configured && !strings.Contains(string(text), "Which?") {
			t.Errorf("sent %s, told %v", text, told)
		}
		q.Run = "20260302T090000.000Z-000000"
		if err := (Answers{d.Runner}).AskAgain(t.Context(), q); err == nil {
			t.Error("there is no such run")
		}
	}
}

// TestOpenQuestions: a fire is told the unanswered questions of earlier runs of its job, and forgets those that expired once its agent has
// read them.
func TestOpenQuestions(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	open := d.waits(nil)
	for id, q := range map[string]question.Question{
		"answered": {Job: "a", Answer: "x"}, "another job": {Job: "b"}, "own": {Job: "a"}, "lapsed": {Job: "a", Lapsed: true}, "lapsed and answered": {Job: "a", Answer: "x", Lapsed: true},
	} {
		q.Run, q.Asked, q.Expires = id, d.now, d.now.Add(time.Hour)
		must(t, d.Questions.Ask(t.Context(), q))
	}
	f := &fire{r: d.Runner, job: d.job("a"), run: "own"}
	list := func() (runs []string) {
		for _, q := range f.questions() {
			runs = append(runs, q.Run)
		}
		slices.Sort(runs)
		return runs
	}
	if got := list(); !slices.Equal(got, []string{open.ID, "lapsed"}) {
		t.Errorf("%q", got)
	}
	f.forgetQuestions(t.Context(), runlog.Record{})
	if got := list(); len(got) != 2 {
		t.Errorf("no turn, left %q", got)
	}
	must(t, d.Questions.Edit(t.Context(), open.ID, func(q *question.Question) error { q.Lapsed = true; return nil }))
	f.forgetQuestions(t.Context(), runlog.Record{Turns: 1})
	if got := list(); !slices.Equal(got, []string{open.ID}) { // that run waits, and must end first
		t.Errorf("left %q", got)
	}
	must(t, d.end(open.ID, runlog.Expired))
	f.forgetQuestions(t.Context(), runlog.Record{Turns: 1})
	if got := list(); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}

// TestExpiredQuestionIsToldOnce: the next fire tells the agent of a question that expired, and forgets it.
func TestExpiredQuestionIsToldOnce(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Answering{Asked: new([]engine.Request)}, time.Hour)
	r := d.waits(func(q *question.Question) { q.Lapsed = true })
	must(t, d.end(r.ID, runlog.Expired))
	d.fires(Options{}, runlog.OK, false)
	if _, err := d.Questions.Load(r.ID); err == nil {
		t.Error("the question is left")
	}
}

// TestPartsOfAContinuation: it has the rights that both its run and its job have, and what is left of the limits.
func TestPartsOfAContinuation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := newFixture(t, runtest.Turn(nothing), time.Minute, "allowed-tools: [WebSearch, WebFetch]", "max-cost: 0.8", "timeout: 5m", "dirs: ["+dir+"]")
	j := d.job("a")
	f := &fire{r: d.Runner, job: j, run: "x", claim: &claim{r: d.Runner}}
	own := f.spec()
	c := &continuation{f: f, settled: 0.5, before: runlog.Record{
		ID: "x", Engine: "costly", Model: "m", Tools: []string{"WebSearch", "Bash(rm *)"}, Dirs: []string{dir}, AllowPing: true,
	}}
	c.before.Job, c.before.AllowPing = "a", true
	s := c.spec()
	if !slices.Equal(s.Policy.Tools, []string{"WebSearch"}) || len(s.Policy.Dirs) != 1 || !s.Policy.AllowPing || s.Policy.Deliver || !s.Identity.Again {
		t.Errorf("%+v", s.Policy)
	}
	if s.Engine.Model != "m" || s.Engine.Name != "costly" || s.Limits.Time != own.Limits.Time || math.Abs(s.Limits.Cost-0.3) > 1e-9 {
		t.Errorf("%+v, %+v", s.Engine, s.Limits)
	}
	c.question.Left, c.before.AllowPing, c.before.Dirs = time.Second, false, nil
	if s = c.spec(); s.Limits.Time != time.Second || s.Policy.AllowPing || len(s.Policy.Dirs) != 0 {
		t.Errorf("%+v, %+v", s.Policy, s.Limits)
	}
	d.Spend.Limits.PerRun = 0.6
	if s = c.spec(); math.Abs(s.Limits.Cost-0.1) > 1e-9 {
		t.Errorf("a limit per run: %v", s.Limits.Cost)
	}
	c.before.Engine = "script:x"
	if s = c.spec(); math.Abs(s.Limits.Cost-0.3) > 1e-9 {
		t.Errorf("a script has no limit per run: %v", s.Limits.Cost)
	}
	d.Spend.Limits.PerRun = math.Inf(1)
	if c.before.Engine = "costly"; math.Abs(c.spec().Limits.Cost-0.3) > 1e-9 {
		t.Errorf("no limit per run: %v", c.spec().Limits.Cost)
	}
	if got := fmt.Sprintf("%T", c.spec().Conversation); got != "conversation.Resumed" {
		t.Errorf("its conversation is a %s", got)
	}
	if f.job.Background = false; !c.spec().Input.Task.Background {
		t.Error("it is in the foreground")
	}
	for name, want := range map[string]string{"isolated": "conversation.Resumed", "persistent": "conversation.Routine"} {
		c.before.Persistent = name == "persistent"
		if got := fmt.Sprintf("%T", c.conversation()); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	c.before.Persistent, c.before.Shared = false, true
	if resumed, ok := c.conversation().(conversation.Resumed); !ok || fmt.Sprintf("%T", resumed.Conversation) != "conversation.Branch" {
		t.Errorf("%+v", c.conversation())
	}
}

// TestRecordOfAContinuation: the record of the run goes on, with the facts of this process, and a compaction by another run since.
func TestRecordOfAContinuation(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	for _, c := range []struct {
		previous   string
		persistent bool
		want       string
	}{{"y", true, "done"}, {"y", false, "failed"}, {"x", true, "failed"}} {
		f := &fire{r: d.Runner, previous: runlog.Record{ID: c.previous, Compaction: runlog.CompactionDone}}
		before := runlog.Record{ID: "x", Persistent: c.persistent, Compaction: runlog.CompactionFailed, Continued: 1, Reserved: 3}
		r := runlog.Record{Busy: true, AllowPing: true}
		must(t, (&continuation{f: f, before: before, settled: 2}).Begin(&r))
		if string(r.Compaction) != c.want || r.ID != "x" || r.Continued != 2 || r.Settled != 2 || r.Reserved != 0 || !r.Busy || !r.AllowPing || !r.Shown.Equal(d.now) {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}
