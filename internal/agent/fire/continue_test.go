package fire

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit"
)

// instead puts a directory where a file is, so that it can be neither read nor written.
func instead(path string) error {
	return errors.Join(os.RemoveAll(path), os.MkdirAll(path+"/x", 0o700))
}

// TestContinueWithoutItsFiles: a run does not go on, and does not end without an error, if what it needs cannot be read or written.
func TestContinueWithoutItsFiles(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(d *fixture, r *runlog.Run) string{
		"record":    func(d *fixture, r *runlog.Run) string { return d.Home.Run(r.ID, "run.json") },
		"job lock":  func(d *fixture, _ *runlog.Run) string { return d.Home.JobLock("a") },
		"question":  func(d *fixture, r *runlog.Run) string { return d.Home.Question(r.ID) },
		"events":    func(d *fixture, r *runlog.Run) string { return d.Home.Run(r.ID, "events.jsonl") },
		"run lock":  func(d *fixture, r *runlog.Run) string { return d.Home.RunLock(r.ID) },
		"ledger":    func(d *fixture, _ *runlog.Run) string { return d.Home.Lock("ledger") },
		"jobs":      func(d *fixture, _ *runlog.Run) string { return d.Home.Path("routines", "a.md", "x") },
		"questions": func(d *fixture, _ *runlog.Run) string { return d.Home.Lock("questions") },
	} {
		for _, expired := range []bool{false, true} {
			d := newFixture(t, runtest.Turn(nothing), time.Minute)
			d.warns()
			r := d.waits(func(q *question.Question) {
				if q.Answer = "blue"; expired {
					q.Answer, q.Expires = "", q.Asked
				}
			})
			must(t, r.Update(func(r *runlog.Record) { r.Accounted = true }))
			must(t, r.Event(t.Context(), runlog.Event{Type: runlog.UsageEvent, Cost: 0.25, Usage: &runlog.Usage{}}))
			path := broken(d, r)
			if name == "jobs" {
				must(t, os.RemoveAll(d.Home.Routines()))
				must(t, os.WriteFile(d.Home.Routines(), nil, 0o600))
			} else {
				must(t, instead(path))
			}
			_, err := Answers{d.Runner}.Continue(t.Context(), r.ID, run.Observer{})
			if fine := name == "questions" && !expired || name == "events" && expired; !fine && err == nil {
				t.Errorf("%s, expired %v: no error", name, expired)
			}
		}
	}
}

// TestEndOfAContinuation: the job's after executable runs at its end, a failure is reported, and what waits in the outbox is sent.
func TestEndOfAContinuation(t *testing.T) {
	t.Parallel()
	for name, expires := range map[string]bool{"fails": false, "expires": true} {
		d := newFixture(t, runtest.Turn(func(engine.Request) error { return errLater }), time.Minute, "after: end")
		d.script("end", "touch ended")
		d.approve()
		r := d.waits(func(q *question.Question) {
			if q.Answer = "blue"; expires {
				q.Answer, q.Expires = "", q.Asked
			}
		})
		d.queues()
		if done, _ := (Answers{d.Runner}).Continue(t.Context(), r.ID, run.Observer{}); done.Outcome != map[bool]runlog.Outcome{false: runlog.Failed, true: runlog.Expired}[expires] {
			t.Errorf("%s: %s", name, done.Outcome)
		}
		if _, err := os.Stat(d.Home.Path("ended")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := d.causes(); (len(got) == 1) != !expires {
			t.Errorf("%s: causes %q", name, got)
		}
		d.sentAll()
	}
}

// queues puts a message into the outbox, which a later flush sends with a command.
func (d *fixture) queues() {
	d.t.Helper()
	post := d.Outbox
	post.Waits = true
	_, err := post.Send(d.t.Context(), outbox.Message{ID: "m-1", Text: "x", Kind: outbox.Ping})
	must(d.t, err)
	command := filepath.Join(d.t.TempDir(), "send")
	must(d.t, testkit.WriteFile(command, []byte("#!/bin/sh\ncat > /dev/null\n"), 0o700))
	d.Outbox.Command, d.Outbox.Env = []string{command}, []string{"PATH=" + os.Getenv("PATH")}
}

// sentAll wants the outbox to be empty.
func (d *fixture) sentAll() {
	d.t.Helper()
	if left, _ := filepath.Glob(filepath.Join(d.Home.Outbox(), "*.jsonl")); len(left) > 0 {
		d.t.Errorf("left in the outbox: %q", left)
	}
}

// archive says which engine holds a session.
type archive string

func (a archive) Holder(string) string { return string(a) }

func (archive) Entries(string) ([]transcript.Entry, error) { return nil, errLater }

// TestCarriedOver: the answer goes to the job's present engine only if its session has moved there.
func TestCarriedOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		persistent bool
		session    string
		holder     archive
		want       bool
	}{
		{true, "s", "native", true}, {true, "s", "costly", false}, {true, "", "native", false}, {false, "s", "native", false},
	} {
		d := newFixture(t, runtest.Turn(nothing), 0)
		d.Archive = c.holder
		if c.session != "" {
			must(t, store.Replace(d.Home.RoutineSession("a"), []byte(c.session+"\n")))
		}
		k := &continuation{f: &fire{r: d.Runner}, before: runlog.Record{Subject: runlog.Subject{Job: "a"}, Engine: "costly", Persistent: c.persistent}}
		if got := k.carriedOver(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestLostSession: the prompt of a run that continues says that its session is lost.
func TestLostSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		session    string
		persistent bool
		lost       bool
	}{{"", false, true}, {"s", false, false}, {"", true, false}} {
		d := newFixture(t, runtest.Turn(nothing), 0)
		r := d.began(d.job("a"), nil)
		k := &continuation{f: &fire{r: d.Runner}, before: runlog.Record{Persistent: c.persistent}, session: c.session}
		if in, err := k.Prepare(t.Context(), d.ToolsOf(r, nil), prompt.Input{}); err != nil || (in.Session == prompt.Lost) != c.lost {
			t.Errorf("%+v: %v, %v", c, in.Session, err)
		}
	}
}
