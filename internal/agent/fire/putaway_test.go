package fire

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/runtest"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/changed"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// TestPutAway: after a success, and after a second failure, a reminder is gone; after a first failure, and if it was not tried, it stays.
func TestPutAway(t *testing.T) {
	t.Parallel()
	const text = "(agent unavailable) Call mum."
	for name, c := range map[string]struct {
		outcome runlog.Outcome
		claims  int // attempts that were made before
		verify  bool
		attempt int // of its file afterwards; -1: it is gone
		told    string
	}{
		"ok":                  {runlog.OK, 1, false, -1, ""},
		"unreported":          {runlog.Unreported, 1, false, -1, ""},
		"gated":               {runlog.Gated, 1, false, -1, ""},
		"refused":             {runlog.Refused, 1, false, 0, ""},
		"paused":              {runlog.Paused, 0, false, 0, ""},
		"skipped":             {runlog.Skipped, 0, false, 0, ""},
		"failed":              {runlog.Failed, 1, false, 1, ""},
		"failed unclaimed":    {runlog.Failed, 0, false, 1, ""},
		"interrupted at once": {runlog.Interrupted, 0, false, 0, ""},
		"failed again":        {runlog.Failed, 2, false, -1, text},
		"timeout again":       {runlog.Timeout, 2, false, -1, text},
		"unverified":          {runlog.Failed, 1, true, -1, ""},
	} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		j := d.reminder("isolated: true")
		r := d.began(j, nil)
		var err error
		for range c.claims {
			j, err = d.Jobs.Claim(j)
			must(t, err)
		}
		if c.verify {
			must(t, r.Event(t.Context(), runlog.Event{Type: runlog.Verified, IsError: true}))
		}
		must(t, r.Conclude(c.outcome, ""))
		ending{d.Runner, j}.putAway(t.Context(), r, nil)
		kept, err := d.Runs.Load(r.ID)
		if err != nil || kept.Outcome != c.outcome {
			t.Errorf("%s: recorded as %q, %v", name, kept.Outcome, err)
		}
		files, err := d.Jobs.Load()
		must(t, err)
		left, known := files.ByID("r")
		if known != (c.attempt >= 0) || known && int(left.Attempt()) != c.attempt {
			t.Errorf("%s: its file is %s, attempt %d", name, left.Path, left.Attempt())
		}
		if got := strings.Join(d.told(), "\n"); got != c.told {
			t.Errorf("%s: told %q", name, got)
		}
	}
}

// TestPutAwayOnlyReminders: nothing is done for another job, or for a reminder that was cancelled just before.
func TestPutAwayOnlyReminders(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	a := d.job("a")
	r := d.began(a, nil)
	r.Outcome = runlog.OK
	ending{d.Runner, a}.putAway(t.Context(), r, nil)
	j := d.reminder("isolated: true")
	ending{d.Runner, j}.putAway(t.Context(), r, job.ErrGone)
	for _, path := range []string{a.Path, j.Path} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestChain: the next reminder of a chain is made once, with the approval of this one; a reminder stays if that fails.
func TestChain(t *testing.T) {
	t.Parallel()
	lines := []string{"isolated: true", "allowed-tools: [WebSearch]", "max-chain: 3"}
	for _, widened := range []bool{true, false} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		if !widened {
			lines = []string{"isolated: true", "max-chain: 3"}
		}
		j := d.reminder(lines...)
		d.approveJob(j)
		r := d.began(j, nil)
		e := ending{d.Runner, j}
		e.putAway(t.Context(), r, nil) // its run has not ended
		must(t, store.Replace(j.Path, j.Source()))
		if got := d.chain(); len(got) != 0 {
			t.Errorf("it did not ask for one: %q", got)
		}
		must(t, d.Changes.Propose(t.Context(), r.ID, "page", []byte("new")))
		must(t, d.Changes.CommitRun(t.Context(), r.ID, changed.Job{Kind: r.Kind, ID: "r"}))
		must(t, r.Event(t.Context(), runlog.Event{Type: runlog.FollowUp, Text: "2026-03-03T09:00:00Z"}))
		for range 2 {
			e.putAway(t.Context(), r, nil)
			if got := d.chain(); len(got) != 1 || got[0] != "2026-03-03 09:00:00 +0000 UTC Call mum. 1 true" && !strings.Contains(got[0], "Call mum.") || !strings.HasSuffix(got[0], "true") {
				t.Errorf("%q", got)
			}
		}
		files, err := d.Jobs.Load()
		must(t, err)
		child := files.Only(job.Reminder).Jobs[0]
		if _, differs, err := d.Changes.CompareOf(changed.Job{Kind: r.Kind, ID: child.ID}, "page", []byte("new"), false); differs || err != nil {
			t.Errorf("what it found changed is lost: %v", err)
		}
		if _, known, err := d.Approvals.Last(child.ID); known != widened || err != nil {
			t.Errorf("approved %v, %v", known, err)
		}
		must(t, instead(d.Home.Run(r.ID, "events.jsonl")))
		if again, err := d.Runs.At(r.ID); err != nil || e.followUp(t.Context(), j, again) == nil {
			t.Errorf("its events cannot be read: %v", err)
		}
	}
}

// TestClaimsOfAReminder: an agent's reminder is tried twice, a plain one until it is delivered.
func TestClaimsOfAReminder(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	f := &fire{r: d.Runner, job: d.reminder("isolated: true")}
	for _, want := range []error{nil, nil, errSpent} {
		if err := f.claimFile(); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	d = newFixture(t, runtest.Turn(nothing), time.Minute)
	f = &fire{r: d.Runner, job: d.reminder("plain: true")}
	for range 3 {
		if err := f.claimFile(); err != nil || f.job.Attempt() != 1 {
			t.Errorf("attempt %d, %v", f.job.Attempt(), err)
		}
	}
}

// TestConcluded: a claimed reminder whose last run came to an end is not run again.
func TestConcluded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome          runlog.Outcome
		verified, waits  bool // rejected by its checker; not claimed
		other            bool // the last run was for another time
		concluded, stays bool
	}{
		"ok":          {outcome: runlog.OK, concluded: true},
		"unreported":  {outcome: runlog.Unreported, concluded: true},
		"gated":       {outcome: runlog.Gated, concluded: true},
		"expired":     {outcome: runlog.Expired, concluded: true},
		"waiting":     {outcome: runlog.Waiting, concluded: true, stays: true},
		"failed":      {outcome: runlog.Failed, stays: true},
		"timeout":     {outcome: runlog.Timeout, stays: true},
		"rejected":    {outcome: runlog.Failed, verified: true, concluded: true},
		"interrupted": {outcome: runlog.Interrupted, stays: true},
		"refused":     {outcome: runlog.Refused, stays: true},
		"unclaimed":   {outcome: runlog.OK, waits: true, stays: true},
		"another":     {outcome: runlog.OK, other: true, stays: true},
	} {
		d := newFixture(t, runtest.Turn(nothing), time.Minute)
		j := d.reminder("isolated: true")
		at := j.RunAt
		if c.other {
			at = at.Add(-time.Hour)
		}
		r := d.began(j, func(r *runlog.Record) { r.Scheduled = &at })
		if !c.waits {
			var err error
			j, err = d.Jobs.Claim(j)
			must(t, err)
		}
		must(t, r.Event(t.Context(), runlog.Event{Type: runlog.Verified, IsError: c.verified, Count: 1}))
		must(t, r.Finish(c.outcome, ""))
		f := &fire{r: d.Runner, job: j, previous: r.Record}
		if got := f.concluded(t.Context()); got != c.concluded {
			t.Errorf("%s: %v", name, got)
		}
		if _, err := os.Stat(j.Path); (err == nil) != c.stays {
			t.Errorf("%s: %v", name, err)
		}
		if want := map[bool]int{true: 1}[c.outcome == runlog.Interrupted]; f.retried != want {
			t.Errorf("%s: retried %d", name, f.retried)
		}
	}
}

// TestPlainReminder: its text is delivered as it is; if that cannot be noted, it stays, with a warning.
func TestPlainReminder(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	j := d.reminder("plain: true")
	r := d.began(j, nil)
	must(t, r.Conclude(runlog.Failed, ""))
	must(t, os.MkdirAll(d.Home.Locks(), 0o700))
	must(t, instead(d.Home.Lock("ledger")))
	warned := d.warns()
	ending{d.Runner, j}.putAway(t.Context(), r, nil)
	if _, err := os.Stat(j.Path); err != nil || len(*warned) == 0 {
		t.Errorf("%v, warned %q", err, *warned)
	}
	must(t, os.RemoveAll(d.Home.Lock("ledger")))
	ending{d.Runner, j}.putAway(t.Context(), r, nil)
	if _, err := os.Stat(j.Path); err == nil || !slices.Equal(d.told(), []string{"Call mum."}) {
		t.Errorf("%v, told %q", err, d.told())
	}
}

// TestReminderThatCannotBeClaimed: it stays for another attempt, with a warning.
func TestReminderThatCannotBeClaimed(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	j := d.reminder("isolated: true")
	r := d.began(j, nil)
	must(t, r.Conclude(runlog.Failed, ""))
	must(t, os.MkdirAll(d.Home.State(), 0o700))
	must(t, os.WriteFile(d.Home.Firing(), nil, 0o600))
	warned := d.warns()
	e := ending{d.Runner, j}
	e.putAway(t.Context(), r, nil)
	if _, err := os.Stat(j.Path); err != nil || len(*warned) == 0 || len(d.told()) > 0 {
		t.Errorf("%v, warned %q, told %q", err, *warned, d.told())
	}
	if over, err := e.giveUp(t.Context(), &j, r); over || err == nil {
		t.Errorf("over %v, %v", over, err)
	}
	if err := (&fire{r: d.Runner, job: j}).claimFile(); err == nil {
		t.Error("no error")
	}
}

// TestChainWithoutApproval: if the approval cannot be noted, the next reminder is made all the same and waits for it, with a warning.
func TestChainWithoutApproval(t *testing.T) {
	t.Parallel()
	d := newFixture(t, runtest.Turn(nothing), time.Minute)
	j := d.reminder("isolated: true", "allowed-tools: [WebSearch]", "max-chain: 3")
	r := d.began(j, nil)
	must(t, r.Event(t.Context(), runlog.Event{Type: runlog.FollowUp, Text: "2026-03-03T09:00:00Z"}))
	must(t, instead(d.Home.Approvals()))
	warned := d.warns()
	e := ending{d.Runner, j}
	must(t, e.followUp(t.Context(), j, r))
	if got := d.chain(); len(got) != 1 || !strings.HasSuffix(got[0], "false") || len(*warned) != 1 {
		t.Errorf("%q, warned %q", got, *warned)
	}
}
