package fire

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/slot"
)

// TestSeen: a cause is over once what it is about is right again or gone, and not while that cannot be told.
func TestSeen(t *testing.T) {
	t.Parallel()
	unreadable := func(h *hooks) { must(h.t, store.Replace(h.Home.Path("routines", "bad.md"), []byte("---\nid: [\n"))) }
	routine := func(lines ...string) func(h *hooks) { return func(h *hooks) { h.write(lines...) } }
	holds := func(path func(h *hooks) string) func(h *hooks) {
		return func(h *hooks) {
			guard, err := lock.TryGuard(path(h))
			must(h.t, err)
			h.t.Cleanup(guard.Release)
		}
	}
	for _, c := range []struct {
		kind    notify.Kind
		subject string
		prep    func(h *hooks)
		want    string
	}{
		{notify.Service, "costly", nil, ""},
		{notify.Key, "other", nil, "is not used any more"},
		{notify.Engine, "other", unreadable, ""},
		{notify.Engine, "none", nil, ""},
		{notify.Key, "native", routine("engine: native"), ""},
		{notify.Job, "a", nil, ""},
		{notify.Job, "b", nil, gone},
		{notify.Job, "b", unreadable, ""},
		{notify.Job, "a", routine("enabled: false"), gone},
		{notify.Unit, "ollim-tick.service", nil, "works again"},
		{notify.Unit, "ollim-other.service", nil, ""},
		{notify.Approval, "tool-policy.yaml", nil, ""},
		{notify.Approval, "b", nil, gone},
		{notify.Approval, "b", unreadable, ""},
		{notify.Approval, "a", nil, "is approved"},
		{notify.Approval, "a", routine("allowed-tools: [WebSearch]"), ""},
		{notify.Approval, "skill:none", nil, gone},
		{notify.Refused, "b", nil, gone},
		{notify.Refused, "b", unreadable, ""},
		{notify.Refused, "a", nil, "may run again"},
		{notify.Refused, "a", routine("skills: [none]"), ""},
		{notify.Refused, "a", routine("allowed-tools: [WebSearch]"), ""},
		{notify.Monitor, "tick", nil, ""},
		{notify.Monitor, "a", nil, gone},
		{notify.Monitor, "b", nil, gone},
		{notify.Monitor, "b", unreadable, ""},
		{notify.Monitor, "a", routine("heartbeat: https://example.com/x"), ""},
		{notify.Monitor, "a", routine("heartbeat: https://example.com/x", "enabled: false"), gone},
		{notify.Gone, "ci", func(h *hooks) { h.entry() }, gone},
		{notify.Gone, "ci", nil, gone},
		{notify.Gone, "ci", func(h *hooks) { h.entry(); must(h.t, os.Remove(h.Home.Path("webhooks", "ci.md"))) }, ""},
		{notify.Leftover, "x", nil, "can run again"},
		{notify.Leftover, "x", holds(func(h *hooks) string { return h.Home.JobLock("a") }), ""},
		{notify.Leftover, "x", holds(func(h *hooks) string { must(h.t, os.MkdirAll(h.Home.Run("x"), 0o700)); return h.Home.RunLock("x") }), ""},
		{notify.Limit, "per-day", nil, ""},
	} {
		h := newHooks(t)
		if c.prep != nil {
			c.prep(h)
		}
		files, err := h.Jobs.Load()
		must(t, err)
		e := notice.Entry{Kind: string(c.kind), Subject: c.subject, Jobs: map[string]notice.Count{"a": {}}}
		if got := (Rules{h.Runner}).seen(e, files); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.subject, got, c.want)
		}
	}
}

// TestSkillIsApproved: the cause about a skill ends with its approval.
func TestSkillIsApproved(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), 0)
	must(t, store.Replace(d.Home.Skill("s"), []byte("---\nname: s\ndescription: d\n---\nDo it.\n")))
	u := Rules{d.Runner}
	if how := u.approvedNow("skill:s", job.Job{}, false, false); how != "" {
		t.Errorf("%q before", how)
	}
	s, err := d.Approvals.OfSkill("s")
	must(t, err)
	must(t, d.Approvals.Approve(t.Context(), s, approval.Owner))
	if how := u.approvedNow("skill:s", job.Job{}, false, false); how != "is approved" {
		t.Errorf("%q after", how)
	}
}

// TestRecheck: a cause whose subject is gone ends in silence, one that is over with a message, and any other lasts.
func TestRecheck(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), 0)
	d.opens(notify.Job, "a", "b")
	d.opens(notify.Unit, "x-tick.service")
	files, err := d.Jobs.Load()
	must(t, err)
	must(t, Rules{d.Runner}.Recheck(t.Context(), files))
	if got := d.causes(); len(got) != 1 || !strings.HasPrefix(got[0], "job a: ") {
		t.Errorf("open: %q", got)
	}
	page, err := d.Notices.Read()
	if _, known := page.Causes["job b"]; known || err != nil || page.Causes["unit x-tick.service"].Open() {
		t.Errorf("%+v, %v", page.Causes, err)
	}
}

// TestFit: a job may run again once nothing of its file keeps it from running.
func TestFit(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"": "", "skills: [none]": "none", "subagent: none": "none", "subagent: none\nengine: script:x": "no subagents",
		"allowed-tools: [WebSearch]": "not approved",
	} {
		d := newFixture(t, runtest.Turn(nothing), 0, lines)
		j := d.job("a")
		if want != "not approved" {
			d.approveJob(j)
		}
		err := Rules{d.Runner}.fit(j)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", lines, err, want)
		}
	}
	d := newFixture(t, runtest.Turn(nothing), 0)
	must(t, store.Replace(d.Home.ToolPolicy(), []byte("none: 1\n")))
	if err := (Rules{d.Runner}).fit(d.job("a")); err == nil {
		t.Error("tool-policy.yaml is wrong, and it may run")
	}
	d = newFixture(t, runtest.Turn(nothing), 0)
	if d.Settings.Engine = ""; !errors.Is(Rules{d.Runner}.fit(d.job("a")), run.ErrNoEngine) {
		t.Error("there is no engine, and it may run")
	}
	must(t, store.Replace(d.Home.Agent("helper"), []byte("---\nname: helper\ndescription: d\n---\nHelp.\n")))
	if err := (Rules{d.Runner}).CheckSkills(job.Job{Subagent: "helper", Engine: "costly"}); err != nil {
		t.Error(err)
	}
}

// TestBound: on the wrong machine nothing is due for a timer, and a person is refused.
func TestBound(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), 0)
	d.Host.Name = "laptop"
	for _, c := range []struct {
		host    string
		trigger Trigger
		want    error
	}{
		{"", Trigger{}, nil},
		{"laptop", Trigger{Scheduled: true}, nil},
		{"server", Trigger{}, run.ErrRefused},
		{"server", Trigger{Cron: func() bool { return false }}, run.ErrRefused},
		{"server", Trigger{Cron: inCrontab}, slot.ErrNone},
		{"server", Trigger{Scheduled: true}, slot.ErrNone},
	} {
		if err := (Rules{d.Runner}).bound(job.Job{Host: c.host}, c.trigger); !errors.Is(err, c.want) {
			t.Errorf("%q, %+v: %v", c.host, c.trigger, err)
		}
	}
}
