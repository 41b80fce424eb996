package run_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// open opens causes of the job a, each told to the owner.
func (s *fixture) open(t *testing.T, causes ...notify.Cause) {
	t.Helper()
	for _, c := range causes {
		c.Text, c.Jobs = "it fails", append(c.Jobs, notify.Affected{ID: "a"})
		if _, err := s.Notify().Open(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// causes returns the keys of the causes that are open, sorted.
func (s *fixture) causes(t *testing.T) (keys []string) {
	t.Helper()
	open, err := s.Notify().OpenCauses()
	if err != nil {
		t.Fatal(err)
	}
	for key := range open {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// TestCausesAfterARun: a run opens the causes that it has met, and ends those that it has shown to be over; one that failed or was refused
// ends none, except that of a server it has used.
func TestCausesAfterARun(t *testing.T) {
	t.Parallel()
	before := []notify.Cause{
		{Kind: notify.Job, Subject: "a"}, {Kind: notify.Gone, Subject: "a"}, {Kind: notify.Gone, Subject: "b"}, {Kind: notify.Server, Subject: "good"},
		{Kind: notify.Server, Subject: "idle"}, {Kind: notify.Limit, Subject: "per-day"}, {Kind: notify.Disk, Subject: "a"},
	}
	failed := runlog.Event{Type: runlog.ServerFailed, Tool: "bad", Text: "not there"}
	uses := func(server string) runlog.Event {
		return runlog.Event{Type: runlog.ToolResult, Tool: "mcp__" + server + "__x"}
	}
	for name, c := range map[string]struct {
		events  []runlog.Event
		err     error
		permit  error
		awaited bool
		none    bool // nothing was open before
		open    []string
		warned  string
	}{
		"ok":         {events: []runlog.Event{uses("good")}, open: []string{"disk a", "gone b", "server idle"}},
		"waiting":    {events: []runlog.Event{{Type: runlog.Ping, Tool: runlog.AskOwner, Text: "?"}}, open: []string{"disk a", "gone b", "job a", "server good", "server idle"}},
		"failed":     {events: []runlog.Event{uses("good")}, err: errTest, open: []string{"disk a", "gone a", "gone b", "job a", "limit per-day", "server idle"}},
		"refused":    {permit: run.Refuse("no"), open: []string{"disk a", "gone a", "gone b", "job a", "limit per-day", "server good", "server idle"}},
		"server":     {events: []runlog.Event{failed}, none: true, open: []string{"server bad"}},
		"used, then": {events: []runlog.Event{uses("good"), {Type: runlog.ServerFailed, Tool: "good", Text: "gone"}}, open: []string{"disk a", "gone b", "server good", "server idle"}},
		"awaited":    {events: []runlog.Event{failed}, none: true, awaited: true, warned: "MCP server bad: not there"},
	} {
		e := plays()
		e.run = func(_ context.Context, _ engine.Request, _ engine.Tools, sink engine.Sink) error {
			return errors.Join(all(sink, answered(c.events...)...), c.err)
		}
		s, spec := newFixture(t, t.TempDir(), e), routine()
		if !c.none {
			s.open(t, before...)
		}
		spec.Origin, spec.Policy.Awaited = &caller{permit: c.permit}, c.awaited
		_, _ = s.Run(t.Context(), spec)
		if got := s.causes(t); !slices.Equal(got, c.open) {
			t.Errorf("%s: open are %q, want %q", name, got, c.open)
		}
		if got := strings.Join(s.warned, "; "); got != c.warned {
			t.Errorf("%s: warned %q", name, got)
		}
	}
}

// TestCauseOfAModel: a run that another model answered opens the cause of the requested one. It ends when that answers again, or when no job
// asks it any more; a run without an answer, or that began before, changes nothing.
func TestCauseOfAModel(t *testing.T) {
	t.Parallel()
	fell := runlog.Event{Type: runlog.FellBack, Tool: "one", Model: "two", Text: "gone"}
	at := func(m string) []runlog.Event {
		return []runlog.Event{{Type: runlog.Session, Session: "s", Model: m}, {Type: runlog.Text, Text: "done"}, {Type: runlog.Result, Text: "done"}}
	}
	for name, c := range map[string]struct {
		events  []runlog.Event
		subject string // of the open cause; "": there is none
		kind    notify.Kind
		others  bool // another job is concerned as well
		later   time.Duration
		open    []string
		jobs    int // that the cause concerns
	}{
		"fell back":           {events: append([]runlog.Event{fell}, at("two")...), open: []string{"model one"}, jobs: 1},
		"no answer":           {events: []runlog.Event{{Type: runlog.Session, Session: "s", Model: "one"}}, subject: "one", open: []string{"model one"}, jobs: 1},
		"answers again":       {events: at("one"), subject: "one"},
		"is not asked":        {events: at("two"), subject: "one"},
		"is not asked by a":   {events: at("two"), subject: "one", others: true, open: []string{"model one"}, jobs: 1},
		"began before":        {events: at("one"), subject: "one", later: time.Second, open: []string{"model one"}, jobs: 1},
		"another kind":        {events: at("one"), subject: "one", kind: notify.Disk, open: []string{"disk one"}, jobs: 1},
		"no other is touched": {events: at("one"), subject: "three", others: true, open: []string{"model three"}, jobs: 1},
	} {
		s, spec := newFixture(t, t.TempDir(), plays(c.events...)), routine()
		s.Settings.Models = func() model.Table { return model.Table{} }
		if c.kind == "" {
			c.kind = notify.Model
		}
		if c.subject != "" {
			s.now = s.now.Add(c.later)
			var jobs []notify.Affected
			if c.others {
				jobs = []notify.Affected{{ID: "b"}}
			}
			s.open(t, notify.Cause{Kind: c.kind, Subject: c.subject, Jobs: jobs})
			s.now = s.now.Add(-c.later)
		}
		spec.Engine.Model, spec.Engine.Fallback = "one", []string{"two"}
		if got, err := s.Run(t.Context(), spec); err != nil || len(s.warned) > 0 {
			t.Errorf("%s: %+v, %v, warned %q", name, got, err, s.warned)
		}
		open, err := s.Notify().OpenCauses()
		if keys := s.causes(t); err != nil || !slices.Equal(keys, c.open) || len(keys) == 1 && len(open[keys[0]].Jobs) != c.jobs {
			t.Errorf("%s: open are %+v, %v", name, open, err)
		}
	}
}

// TestReportOfWhatCannotBeRead: a run whose events, or whose causes, cannot be read when it reports says so, however it ended.
func TestReportOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	ledger := func(s *fixture) string { return s.Home.State("ledger") }
	for _, fault := range []error{nil, errTest} {
		for name, path := range map[string]func(*fixture) string{
			"events": func(s *fixture) string { return s.Home.Run(s.begun.Run().ID, "events.jsonl") },
			"ledger": ledger, "ledger, when another model answered": ledger,
		} {
			s := newFixture(t, t.TempDir(), plays())
			var during []runlog.Event
			if name == "ledger, when another model answered" {
				during = []runlog.Event{{Type: runlog.FellBack, Tool: "one", Model: "two", Text: "gone"}}
			}
			troubled(notify.Cause{Kind: notify.Gone, Subject: "b"}, during...)(t, s)
			s.begun.Conclude(t.Context(), fault)
			if err := errors.Join(os.RemoveAll(path(s)), os.Symlink("/dev/null/none", path(s))); err != nil || len(s.warned) > 0 {
				t.Fatal(err, s.warned)
			}
			s.begun.Report(t.Context())
			if len(s.warned) == 0 {
				t.Errorf("%s, %v: nothing is said", name, fault)
			}
			s.begun.Release()
		}
	}
}

// TestTextOfARun: the final text is sent if the run delivers, and says at its end that it took updates; a text that cannot be sent is a
// warning.
func TestTextOfARun(t *testing.T) {
	t.Parallel()
	popped := runlog.Event{Type: runlog.UpdatesPopped, Count: 1}
	for name, c := range map[string]struct {
		deliver bool
		events  []runlog.Event
		want    string
		more    bool // a paragraph follows
	}{
		"delivered": {true, answered(), "done", false}, "not": {false, answered(), "", false}, "with updates": {true, answered(popped), "done", true},
		"no text": {true, []runlog.Event{{Type: runlog.Session, Session: "s"}}, "", false},
	} {
		s, spec, w := newFixture(t, t.TempDir(), plays(c.events...)), routine(), &wall{}
		spec.Policy.Deliver, spec.Sender = c.deliver, w
		if _, err := s.Run(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, m := range w.messages {
			got += m.Text
		}
		if more, ok := strings.CutPrefix(got, c.want); !ok || strings.HasPrefix(more, "\n\n") != c.more || len(w.messages) > 1 {
			t.Errorf("%s: delivered %q", name, got)
		}
	}
}

// TestPlainReminder: its text is sent; if it is late it says so, and more than an hour late it waits for the end of the quiet hours.
func TestPlainReminder(t *testing.T) {
	t.Parallel()
	for late, c := range map[time.Duration]struct {
		suffix string
		held   bool
	}{
		0: {}, time.Minute: {}, 3 * time.Minute: {"\n(late: it was due Mon 2 Mar 8:57 AM, 3 minutes ago)", false}, 2 * time.Hour: {"ago)", true},
	} {
		s, spec, w := newFixture(t, t.TempDir(), plays()), routine(), &wall{}
		s.Settings.Quiet = timeparse.Span{From: 8 * 60, To: 10 * 60}
		spec.Plain, spec.Sender, spec.Identity.Scheduled = true, w, s.now.Add(-late)
		got, err := s.Run(t.Context(), spec)
		if err != nil || got.Outcome != runlog.OK || len(w.messages) != 1 || got.Engine != "" {
			t.Fatalf("%v: %+v, %v", late, got, err)
		}
		m := w.messages[0]
		if !strings.HasPrefix(m.Text, "Go.") || !strings.HasSuffix(m.Text, c.suffix) || c.suffix == "" && m.Text != "Go." || m.NotBefore.IsZero() == c.held {
			t.Errorf("%v: %q, not before %v", late, m.Text, m.NotBefore)
		}
	}
}
