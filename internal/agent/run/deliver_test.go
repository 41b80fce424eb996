package run

import (
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/timeparse"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/runlog"
)

// TestWhatARunShowsOver: a run shows that a cause is over which would have kept it from its end, and no other.
func TestWhatARunShowsOver(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	full := runlog.Record{
		Subject: runlog.Subject{Job: "news"}, Engine: engine.Native, Turns: 1, Started: now, Accounted: true, Outcome: runlog.OK,
	}
	without := map[string]func(r *runlog.Record){
		"its job":      func(r *runlog.Record) { r.Job = "" },
		"an answer":    func(r *runlog.Record) { r.Turns = 0 },
		"an account":   func(r *runlog.Record) { r.Accounted = false },
		"its end":      func(r *runlog.Record) { r.Outcome = runlog.Waiting },
		"a late start": func(r *runlog.Record) { r.Started = now.Add(-time.Nanosecond) },
	}
	for _, c := range []struct {
		kind    notify.Kind
		subject string
		over    bool
		how     string
		needs   []string // what the run must have
	}{
		{notify.Service, engine.Native, true, "", []string{"an answer", "a late start"}},
		{notify.Key, engine.Native, true, "", []string{"an answer", "a late start"}},
		{notify.Engine, engine.Native, true, "", []string{"an answer", "a late start"}},
		{notify.Engine, "none", true, "", []string{"an answer", "a late start"}},
		{notify.Limit, "per-day", true, notify.NoLonger, []string{"an account", "a late start"}},
		{notify.Reserved, "spend", true, notify.NoLonger, []string{"an account", "a late start"}},
		{notify.Unit, "ollim-news.service", true, "", []string{"its job"}},
		{notify.Unit, "ollim@news.service", true, "", []string{"its job"}},
		{notify.Job, "news", true, "", []string{"its job", "its end"}},
		{notify.Refused, "news", true, "", []string{"its job", "its end"}},
		{notify.Approval, "news", true, "is approved", []string{"its job", "its end"}},
		{notify.Service, engine.ClaudeCode, false, "", nil}, {notify.Key, engine.ClaudeCode, false, "", nil},
		{notify.Engine, engine.ClaudeCode, false, "", nil}, {notify.Unit, "ollim-tea.service", false, "", nil},
		{notify.Job, "tea", false, "", nil}, {notify.Refused, "tea", false, "", nil}, {notify.Approval, "tea", false, "", nil},
		{notify.Disk, "news", false, "", nil}, {notify.Gone, "news", false, "", nil},
	} {
		e := notice.Entry{Kind: string(c.kind), Subject: c.subject, Since: now}
		if over, how := isOver(e, full, false); over != c.over || over && how != c.how {
			t.Errorf("%s of %s: over %v, %q", c.kind, c.subject, over, how)
		}
		if over, _ := isOver(e, full, true); over != (c.over && c.how != notify.NoLonger) {
			t.Errorf("%s of %s, for the owner: over %v", c.kind, c.subject, over)
		}
		needs := map[string]bool{}
		for _, need := range c.needs {
			needs[need] = true
		}
		for what, drop := range without {
			r := full
			drop(&r)
			if over, _ := isOver(e, r, false); over != (c.over && !needs[what]) {
				t.Errorf("%s of %s, a run without %s: over %v", c.kind, c.subject, what, over)
			}
		}
	}
	if over, _ := isOver(notice.Entry{Kind: string(notify.Job)}, runlog.Record{Outcome: runlog.OK}, false); over {
		t.Error("a run without a job ends the cause of no job")
	}
}

// TestLatePlainReminder: a plain reminder that is more than an hour late waits for the end of the quiet hours.
func TestLatePlainReminder(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)
	night := timeparse.Span{From: 22 * 60, To: 7 * 60}
	before := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	for i, c := range []struct {
		due   *time.Time
		quiet timeparse.Span
		held  bool
	}{
		{before(time.Hour + time.Second), night, true}, {before(time.Hour), night, false}, {nil, night, false},
		{before(5 * time.Hour), timeparse.Span{From: 22 * 60, To: 5 * 60}, false}, {before(5 * time.Hour), timeparse.Span{}, false},
	} {
		want := time.Time{}
		if c.held {
			want = now.Add(time.Hour)
		}
		if got := heldUntil(c.due, now, c.quiet); !got.Equal(want) {
			t.Errorf("%d: %v, want %v", i, got, want)
		}
	}
}
