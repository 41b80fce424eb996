package fire

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
)

// TestAgain: a recorded run is rebuilt from the job's file of today, or from the recorded one if the job is gone or another.
func TestAgain(t *testing.T) {
	t.Parallel()
	past := prompt.Past{Near: nine}
	d := newFixture(t, runtest.Turn(nothing), time.Minute, "description: then", "retry: 2", "verify: check")
	d.script("check", "exit 0")
	d.approve()
	r := d.fires(Options{Trigger: Trigger{Scheduled: true}, Model: "big"}, runlog.OK, true)
	again := func(record runlog.Record) (run.Again, error) { return New(d.Runner).Again(record, past) }
	wants := func(when, body, model string) {
		t.Helper()
		a, err := again(r)
		if err != nil || !strings.Contains(a.Prompt.Text(), body) || a.Record.Model != model || a.Retries != 2 || a.Request.Run.ID != r.ID {
			t.Errorf("%s: %v, model %q, retries %d, prompt %q", when, err, a.Record.Model, a.Retries, a.Prompt.Text())
		}
	}
	wants("today", "Go.", "big")
	r.Typed = nil
	wants("the model is the job's", "Go.", "")
	for at, late := range map[*time.Time]bool{nil: false, r.Scheduled: true} {
		record := r
		record.Scheduled = at
		a, err := New(d.Runner).Again(record, prompt.Past{Near: nine.Add(3 * time.Hour)})
		if err != nil || strings.Contains(a.Prompt.Text(), "[late") != late {
			t.Errorf("scheduled for %v: %v, %q", at, err, a.Prompt.Text())
		}
	}
	must(t, store.Replace(d.Home.Path("routines", "a.md"), []byte("---\nid: a\ncron: \"@yearly\"\nbackground: true\nisolated: true\nretry: 2\nverify: check\n---\nNow.\n")))
	wants("changed, without approval", "Now.", "")
	other := r
	other.Kind = "webhook"
	if a, err := again(other); err == nil {
		t.Errorf("a record of another kind: %q", a.Prompt.Text())
	}
	must(t, os.Remove(d.Home.Path("routines", "a.md")))
	wants("gone", "Go.", "")
	r.ID = "20260302T090000.000Z-000000"
	if _, err := again(r); !errors.Is(err, ErrNoFile) {
		t.Error(err)
	}
	must(t, store.Replace(d.Home.ToolPolicy(), []byte("none: 1\n")))
	d.write()
	if _, err := again(r); err == nil || errors.Is(err, ErrNoFile) {
		t.Error(err)
	}
	must(t, os.RemoveAll(d.Home.Routines()))
	must(t, os.WriteFile(d.Home.Routines(), nil, 0o600))
	if _, err := again(r); err == nil || errors.Is(err, ErrNoFile) {
		t.Error(err)
	}
}

// TestAgainByID: a record means the id of its job, whatever other files are called.
func TestAgainByID(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute, "subagent: helper")
	must(t, store.Replace(d.Home.Agent("helper"), []byte("---\nname: helper\ndescription: d\n---\nHelp.\n")))
	d.approve()
	r := d.fires(timer(), runlog.OK, true)
	must(t, os.Rename(d.Home.Path("routines", "a.md"), d.Home.Path("routines", "b.md")))
	must(t, store.Replace(d.Home.Path("routines", "a.md"), []byte("---\nid: c\ncron: \"@yearly\"\n---\nOther.\n")))
	if a, err := New(d.Runner).Again(r, prompt.Past{Near: nine}); err != nil || !strings.Contains(a.Prompt.Text(), "Go.") {
		t.Errorf("%v, %q", err, a.Prompt.Text())
	}
	if _, err := New(d.Runner).Preview(t.Context(), "a", Options{}); err == nil {
		t.Error("a could be either")
	}
	must(t, instead(d.Home.Agent("helper")))
	if _, err := New(d.Runner).Again(r, prompt.Past{Near: nine}); err == nil {
		t.Error("its subagent cannot be read")
	}
}

// TestAgainOfABadFile: a job whose file is wrong today is an error, and is not taken for one that is gone.
func TestAgainOfABadFile(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	r := d.fires(timer(), runlog.OK, true)
	d.write("none: 1")
	if _, err := New(d.Runner).Again(r, prompt.Past{Near: nine}); err == nil || errors.Is(err, ErrNoFile) {
		t.Error(err)
	}
}

// TestAgainOfAContinuation: its answer comes from the record, and it is in the background.
func TestAgainOfAContinuation(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	must(t, store.Replace(d.Home.Path("routines", "a.md"), []byte("---\nid: a\ncron: \"0 9 * * *\"\n---\nGo.\n")))
	r := d.fires(timer(), runlog.OK, true)
	first, err := New(d.Runner).Again(r, prompt.Past{Near: nine})
	must(t, err)
	r.Continued = 1
	second, err := New(d.Runner).Again(r, prompt.Past{Near: nine, Sections: []runlog.Section{{Kind: "answer", Text: "blue"}}})
	must(t, err)
	if !strings.Contains(first.Prompt.Text(), "Go.") || strings.Contains(second.Prompt.Text(), "Go.") {
		t.Errorf("%q, then %q", first.Prompt.Text(), second.Prompt.Text())
	}
}

// TestRecordedFile: the kept text of a job's file that cannot be read is damaged.
func TestRecordedFile(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	r := d.fires(timer(), runlog.OK, true)
	if j, err := New(d.Runner).recorded(r); err != nil || j.ID != "a" {
		t.Errorf("%+v, %v", j, err)
	}
	r.Kind = "reminder"
	if _, err := New(d.Runner).recorded(r); !errors.Is(err, request.ErrDamaged) {
		t.Error(err)
	}
}

// TestRefusedWhenRebuilt: only that the job is not approved does not matter for a run that is rebuilt.
func TestRefusedWhenRebuilt(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute, "subagent: helper")
	must(t, store.Replace(d.Home.Agent("helper"), []byte("---\nname: helper\ndescription: d\n---\nHelp.\n")))
	f := &fire{r: d.Runner, job: d.job("a")}
	var r engine.Request
	if err := f.Complete(&r); !errors.Is(err, run.ErrRefused) {
		t.Error(err)
	}
	if err := (rebuilt{f}).Complete(&r); err != nil || r.Scope.Subagent.Name != "helper" {
		t.Errorf("%+v, %v", r.Scope.Subagent, err)
	}
	must(t, instead(d.Home.Agent("helper")))
	if err := (rebuilt{f}).Complete(&r); err == nil || errors.Is(err, run.ErrRefused) {
		t.Error(err)
	}
	must(t, os.RemoveAll(d.Home.Agent("helper")))
	if err := f.Complete(&r); err == nil || err.Error() != "refused: there is no agents/helper.md" && !strings.Contains(err.Error(), "there is no agents/helper.md") {
		t.Error(err)
	}
}
