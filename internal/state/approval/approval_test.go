package approval

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/job"
)

func TestApprove(t *testing.T) {
	d := newDesk(t)
	d.furnish()
	s := d.of(widened())
	d.approved(s, false)
	d.approve(s)
	d.approved(s, true)
	other := s
	other.Key = "w"
	d.approved(other, false)
	d.write("gates/check", "other")
	d.approved(d.of(widened()), false)
	d.furnish()
	d.approved(d.of(widened()), true)
}

func TestFile(t *testing.T) {
	d := newDesk(t)
	j := job.New(job.Routine)
	j.ID, j.Body, j.Gate, j.AllowedTools = "a1", "Do <it>.", "g", []string{"WebSearch", "WebFetch"}
	d.approve(d.of(j))
	want := `{
  "a1": {
    "digest": "` + d.of(j).Digest() + `",
    "approved": "2026-02-24T14:30:00+01:00",
    "by": "owner",
    "kind": "routine",
    "fields": {
      "allowed-tools": [
        "WebFetch",
        "WebSearch"
      ],
      "gate": "g"
    },
    "body": "Do <it>.",
    "files": {
      "gates/g": "missing"
    }
  }
}
`
	if got := d.read(d.Home.Approvals()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	last, known, err := d.Last("a1")
	if err != nil || !known || last.By != Owner || last.At.IsZero() || last.Body != j.Body || last.Fields.Gate != "g" {
		t.Errorf("%+v, %v, %v", last, known, err)
	}
}

func TestForget(t *testing.T) {
	d := newDesk(t)
	a, b := Subject{Key: "a"}, Subject{Key: "b"}
	d.approve(a)
	d.approve(b)
	forget := func(keep ...string) {
		t.Helper()
		if err := d.Forget(context.Background(), func(key string, _ Approval) bool { return slices.Contains(keep, key) }); err != nil {
			t.Error(err)
		}
	}
	before, err := os.Stat(d.Home.Approvals())
	if err != nil {
		t.Fatal(err)
	}
	forget("a", "b")
	if after, err := os.Stat(d.Home.Approvals()); err != nil || !os.SameFile(before, after) {
		t.Errorf("written without a change, %v", err)
	}
	forget("b")
	d.approved(a, false)
	d.approved(b, true)
	forget()
	if got := d.read(d.Home.Approvals()); got != "" {
		t.Errorf("left %s", got)
	}
	forget()
}

// What cannot be understood approves nothing, and is kept.
func TestCorrupt(t *testing.T) {
	s := Subject{Key: "a"}
	for _, content := range []string{"", "{", "[]", `{"a": 1}`, `{"a": {"digest": "` + s.Digest() + `", "files": 3}}`} {
		d := newDesk(t)
		d.write("state/approvals.json", content)
		d.approved(s, false)
		d.approved(s, false)
		aside, _ := filepath.Glob(d.Home.Approvals() + ".corrupt-*")
		if len(aside) != 1 || len(d.warned) != 1 {
			t.Errorf("%q: kept as %q, warned %q", content, aside, d.warned)
		}
		d.approve(s)
		d.approved(s, true)
	}
}

func TestNothingIsApprovedByNothing(t *testing.T) {
	for _, content := range []string{"{}", "null", `{"a": null}`, `{"a": {}}`, `{"A": {"digest": "` + Subject{Key: "a"}.Digest() + `"}}`} {
		d := newDesk(t)
		d.write("state/approvals.json", content)
		d.approved(Subject{Key: "a"}, false)
		if len(d.warned) != 0 {
			t.Errorf("%q: warned %q", content, d.warned)
		}
		d.approve(Subject{Key: "b"})
	}
}

// Reading needs no lock and changes nothing.
func TestReadsOnly(t *testing.T) {
	d := newDesk(t)
	s := Subject{Key: "a"}
	d.approve(s)
	held, err := lock.Try(d.Home.Lock("approvals"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	before, _ := os.Stat(d.Home.State())
	d.approved(s, true)
	d.approved(Subject{Key: "b"}, false)
	d.difference(Subject{Key: "a", Body: "x"})
	if after, _ := os.Stat(d.Home.State()); !after.ModTime().Equal(before.ModTime()) {
		t.Error("something was written")
	}
}

func TestUnreadable(t *testing.T) {
	d := newDesk(t)
	if err := os.MkdirAll(d.Home.Approvals(), 0o700); err != nil {
		t.Fatal(err)
	}
	if ok, err := d.Approved(Subject{Key: "a"}); ok || err == nil {
		t.Errorf("%v, %v", ok, err)
	}
	if err := d.Approve(context.Background(), Subject{Key: "a"}, Owner); err == nil {
		t.Error("approved")
	}
}

// A run passes on no file that it may have changed.
func TestApproveByARun(t *testing.T) {
	const run = "20260224T133000.000Z-abcdef"
	for name, c := range map[string]struct {
		change func(*desk, *job.Job)
		want   bool
	}{
		"all of it":       {func(*desk, *job.Job) {}, true},
		"some of it":      {func(_ *desk, j *job.Job) { j.AllowedTools, j.Gate, j.Skills = j.AllowedTools[:1], "", j.Skills[:1] }, true},
		"no files":        {func(_ *desk, j *job.Job) { j.Gate, j.After, j.Subagent, j.Skills = "", "", "", nil }, true},
		"another skill":   {func(_ *desk, j *job.Job) { j.Skills[0] = "other" }, false},
		"another agent":   {func(d *desk, j *job.Job) { j.Subagent = "other"; d.write("agents/other.md", "text of agents/scout.md") }, false},
		"a changed skill": {func(d *desk, _ *job.Job) { d.write("skills/maps/SKILL.md", "!`rm -r .`") }, false},
		"a new file":      {func(d *desk, _ *job.Job) { d.write("skills/maps/new", "") }, false},
		"a changed agent": {func(d *desk, _ *job.Job) { d.write("agents/scout.md", "tools: Bash") }, false},
		"a lost gate":     {func(d *desk, _ *job.Job) { _ = os.Remove(d.Home.Gate("check")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.furnish()
			j := widened()
			j.Kind, j.ID, j.Body = job.Reminder, "c1", "Look again."
			if err := d.Approve(context.Background(), d.of(j), run); !errors.Is(err, ErrNotInherited) {
				t.Errorf("from nobody: %v", err)
			}
			d.approve(d.of(widened()))
			c.change(d, &j)
			s := d.of(j)
			err := d.Approve(context.Background(), s, run)
			if (err == nil) != c.want || err != nil && !errors.Is(err, ErrNotInherited) {
				t.Errorf("%v", err)
			}
			d.approved(s, c.want)
			if last, known, _ := d.Last("c1"); known != c.want || known && last.By != run {
				t.Errorf("by %q", last.By)
			}
		})
	}
}

func TestTouched(t *testing.T) {
	d := newDesk(t)
	d.furnish()
	d.approve(d.of(widened()))
	d.write("skills/maps/SKILL.md", "other")
	d.write("skills/maps/new", "not approved before")
	j := widened()
	j.Body = "Other."
	last, _, _ := d.Last("w1")
	if got := last.Touched(d.of(j)); !slices.Equal(got, []string{"skills/maps/SKILL.md"}) {
		t.Errorf("%q", got)
	}
}
