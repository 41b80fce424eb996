package fire

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

// TestGateAudit: each second time that a gate closes the run goes on. If it tells the owner something, the gate is off, until it is changed.
func TestGateAudit(t *testing.T) {
	t.Parallel()
	pings := false
	d := newFixture(t, turnOf{func(sink engine.Sink) error {
		if !pings {
			return nil
		}
		return sink(runlog.Event{Type: runlog.Ping, Text: "look"})
	}}, time.Hour, "gate: check", "gate-audit: 2", "update-main-session: blocked")
	fires := func(want runlog.Outcome, audits, off bool) runlog.Record {
		t.Helper()
		r := d.fires(Options{}, want, false)
		if r.Audit != audits || r.GateOff != off {
			t.Errorf("audit %v, off %v", r.Audit, r.GateOff)
		}
		return r
	}
	d.script("check", "exit 1")
	d.approve()
	fires(runlog.Gated, false, false)
	fires(runlog.OK, true, false)
	fires(runlog.Gated, false, false)
	pings = true
	told := fires(runlog.OK, true, false)
	if got := d.causes(); len(got) != 1 || !strings.Contains(got[0], "it would have skipped the run "+told.ID+", which pinged you") {
		t.Errorf("%q", got)
	}
	fires(runlog.OK, false, true)
	d.script("check", "echo broken >&2; exit 2")
	d.approve()
	warned := d.warns()
	fires(runlog.Failed, false, false)
	if got := d.causes(); len(got) != 1 || strings.HasPrefix(got[0], "gate") || len(*warned) > 0 {
		t.Errorf("%q, %q", got, *warned)
	}
}

// turnOf is an engine whose turn is what it does with the sink.
type turnOf struct{ does func(engine.Sink) error }

func (e turnOf) Run(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) (engine.Result, error) {
	err := sink(runlog.Event{Type: runlog.Session, Session: "s"})
	return engine.Result{Session: "s"}, errors.Join(err, e.does(sink), sink(runlog.Event{Type: runlog.UsageEvent, Usage: &runlog.Usage{}}))
}

func (turnOf) Plan(engine.Request, engine.Tools) (engine.Plan, error) { return engine.Plan{}, nil }

func (turnOf) Compact(context.Context, engine.Request, string, engine.Sink) (engine.Compaction, error) {
	return engine.Compaction{}, errLater
}

// TestFoundByAnAudit: whatever reached the owner turns the gate off, and only a run that came to its end is an audit that passed.
func TestFoundByAnAudit(t *testing.T) {
	t.Parallel()
	refused := runlog.Event{Type: runlog.Refusal, Tool: "ping_user"}
	for name, c := range map[string]struct {
		events  []runlog.Event
		outcome runlog.Outcome
		pings   bool
		told    string
		passed  int
	}{
		"nothing":            {nil, runlog.OK, true, "", 1},
		"nothing, no report": {nil, runlog.Unreported, true, "", 1},
		"failed":             {nil, runlog.Failed, true, "", 0},
		"asked":              {[]runlog.Event{{Type: runlog.Ping, Tool: runlog.AskOwner, Text: "?"}}, runlog.Waiting, true, "asked you something", 0},
		"pinged":             {[]runlog.Event{{Type: runlog.Ping, Text: "!"}}, runlog.Failed, true, "pinged you", 0},
		"reported":           {[]runlog.Event{{Type: runlog.Report, Text: "r"}}, runlog.OK, true, "reported", 0},
		"refused":            {[]runlog.Event{refused}, runlog.OK, true, "wanted to tell you something, which was refused", 0},
		"may not ping":       {[]runlog.Event{refused}, runlog.OK, false, "", 1},
	} {
		d := newFixture(t, runtest.Turn(nothing), time.Hour, "gate: check", "gate-audit: 1")
		d.script("check", "exit 1")
		p, r := d.programs("check")
		a := gateAudit{d.Runner, p.job, p.permitted["check"]}
		audits, err := d.Gates.Close(t.Context(), "a", a.digest, r.ID, 1)
		if !audits || err != nil {
			t.Fatal(err)
		}
		for _, e := range c.events {
			must(t, r.Event(t.Context(), e))
		}
		must(t, r.Update(func(r *runlog.Record) { r.Outcome, r.AllowPing = c.outcome, c.pings }))
		if name == "nothing" { // a process that was killed: the next fire notes it
			_, err = a.state(t.Context())
		} else {
			err = a.end(t.Context(), r)
		}
		must(t, err)
		known, err := d.Gates.Of("a", a.digest)
		if err != nil || known.Told != c.told || known.Passed != c.passed || (known.Off == r.ID) != (c.told != "") || known.Audit != "" {
			t.Errorf("%s: %+v, %v", name, known, err)
		}
		if got := d.causes(); (len(got) == 1) != (c.told != "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestAuditWithoutARecord: an audit whose record is gone has not passed.
func TestAuditWithoutARecord(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Hour, "gate: check", "gate-audit: 1")
	d.script("check", "exit 1")
	p, _ := d.programs("check")
	a := gateAudit{d.Runner, p.job, p.permitted["check"]}
	_, err := d.Gates.Close(t.Context(), "a", a.digest, "20260302T090000.000Z-000000", 1)
	must(t, err)
	if known, err := a.state(t.Context()); err != nil || known.Audit != "" || known.Passed != 0 || known.Off != "" {
		t.Errorf("%+v, %v", known, err)
	}
}

// TestGateThatIsOff: it keeps no run from its work, also if it fails, which is a warning.
func TestGateThatIsOff(t *testing.T) {
	t.Parallel()
	for script, warns := range map[string]int{"exit 1": 0, "exit 2": 1} {
		d := newFixture(t, runtest.Turn(nothing), time.Hour, "gate: check", "gate-audit: 1")
		d.script("check", script)
		p, r := d.programs("check")
		a := gateAudit{d.Runner, p.job, p.permitted["check"]}
		_, err := d.Gates.Close(t.Context(), "a", a.digest, r.ID, 1)
		must(t, err)
		must(t, d.Gates.End(t.Context(), "a", r.ID, "pinged you", false))
		warned := d.warns()
		a.r = d.Runner
		if _, err := a.ask(t.Context(), d.ToolsOf(r, nil), p); err != nil || !r.GateOff || len(*warned) != warns {
			t.Errorf("%s: %v, off %v, %q", script, err, r.GateOff, *warned)
		}
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.ask(stopped, d.ToolsOf(r, nil), p); err == nil {
			t.Errorf("%s: a run that was stopped goes on", script)
		}
	}
}
