package fire

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/approval"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/question"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// job returns the job of an id.
func (d *fixture) job(id string) job.Job {
	d.t.Helper()
	files, err := d.Jobs.Load()
	must(d.t, err)
	j, known := files.ByID(id)
	if !known {
		d.t.Fatal(id, files.Faults)
	}
	return j
}

// reminder writes a reminder that was due at nine.
func (d *fixture) reminder(lines ...string) job.Job {
	d.t.Helper()
	text := "---\nid: r\nrun-at: 2026-03-02T09:00:00Z\n" + strings.Join(append(lines, ""), "\n") + "---\nCall mum.\n"
	must(d.t, store.Replace(d.Home.Path("reminders", "r.md"), []byte(text)))
	return d.job("r")
}

// began opens the record of a run of a job whose process is dead.
func (d *fixture) began(j job.Job, change func(r *runlog.Record)) *runlog.Run {
	d.t.Helper()
	id, err := runlog.NewID(d.now, d.Random)
	must(d.t, err)
	r := runlog.Record{ID: id, Subject: subject(j), Started: d.now, Process: runlog.Process{ID: process.ID{PID: 1 << 30}}}
	if change != nil {
		change(&r)
	}
	run, err := d.Runs.Open(r)
	must(d.t, err)
	return run
}

// waits makes a run of the routine a, for the slot nine, wait for the answer to a question.
func (d *fixture) waits(change func(q *question.Question)) *runlog.Run {
	d.t.Helper()
	at := nine
	r := d.began(d.job("a"), func(r *runlog.Record) { r.Scheduled, r.Engine = &at, "costly" })
	must(d.t, r.Event(d.t.Context(), runlog.Event{Type: runlog.Ping, Tool: runlog.AskOwner, Text: "Which?"}))
	must(d.t, r.Finish(runlog.Waiting, ""))
	must(d.t, d.Slots.Claim(slot.Claim{Job: "a", Slot: nine, Run: r.ID, PID: 1 << 30, Outcome: "waiting"}))
	q := question.Question{
		Run: r.ID, Job: "a", Name: "a", Text: "Which?", Asked: d.now, Expires: d.now.Add(time.Hour), Message: r.ID + "-1", Choices: []string{"red", "blue"},
	}
	if change != nil {
		change(&q)
	}
	must(d.t, d.Questions.Ask(d.t.Context(), q))
	return r
}

// told lists what the owner was told: the pending updates.
func (d *fixture) told() (all []string) {
	d.t.Helper()
	list, err := d.Updates.Peek(d.t.Context())
	must(d.t, err)
	for _, u := range list {
		all = append(all, u.Message)
	}
	return all
}

// causes lists the open causes and what they did to jobs.
func (d *fixture) causes() (all []string) {
	d.t.Helper()
	open, err := d.Notify().OpenCauses()
	must(d.t, err)
	for _, key := range slices.Sorted(maps.Keys(open)) {
		text := key + ": " + open[key].Text
		for _, id := range slices.Sorted(maps.Keys(open[key].Jobs)) {
			text += fmt.Sprint(" ", id, open[key].Jobs[id].Failed, open[key].Jobs[id].Missed)
		}
		all = append(all, text)
	}
	return all
}

// held returns the claim of nine without what differs between runs.
func (d *fixture) held() any {
	c, err := d.Slots.Load("a", nine)
	return fmt.Sprint(c.Outcome, c.Held, c.Won, c.Run == "", err)
}

// continues returns the fire that continues a run, with the job's lock.
func (d *fixture) continues(r *runlog.Run) *fire {
	d.t.Helper()
	guard, err := Answers{d.Runner}.waitForJob(d.t.Context(), "a")
	must(d.t, err)
	d.t.Cleanup(guard.Release)
	return &fire{r: d.Runner, run: r.ID, guard: guard, claim: &claim{r: d.Runner, job: job.Job{ID: "a"}, run: r.ID}}
}

// end ends a run that has an outcome.
func (d *fixture) end(id string, outcome runlog.Outcome) error {
	r, err := d.Runs.At(id)
	if err == nil {
		err = r.Finish(outcome, "")
	}
	return err
}

// chain lists the reminders besides r.
func (d *fixture) chain() (all []string) {
	d.t.Helper()
	files, err := d.Jobs.Load()
	must(d.t, err)
	for _, j := range files.Only(job.Reminder).Jobs {
		if j.ID != "r" {
			all = append(all, fmt.Sprint(j.RunAt, j.Body, j.ChainDepth, Rules{d.Runner}.approved(j) == nil))
		}
	}
	return all
}

func (d *fixture) approveJob(j job.Job) {
	d.t.Helper()
	subject, _, err := d.Approvals.Of(j)
	must(d.t, err)
	must(d.t, d.Approvals.Approve(d.t.Context(), subject, approval.Owner))
}

// opens opens causes of a kind.
func (d *fixture) opens(kind notify.Kind, subjects ...string) {
	d.t.Helper()
	for _, s := range subjects {
		_, err := d.Notify().Open(d.t.Context(), notify.Cause{Kind: kind, Subject: s, Name: s, Text: s + " is wrong"})
		must(d.t, err)
	}
}
