package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// byRun explains the run that a name means: what it told the owner, or why it told nothing. The name of a job means also its last slot, if
// that has no run that reached the agent.
func (t *Tracer) byRun(ctx context.Context, name string) error {
	r, err := t.Runs.Find(name)
	_, none := errors.AsType[*plaintext.Unknown](err)
	if err != nil && !none {
		return err
	}
	if runlog.Began(name).IsZero() && !strings.Contains(name, "~") && name != "last" {
		if err := t.bySlot(name, r); err != nil {
			return err
		}
	}
	if none || t.explained[r.ID] {
		return nil
	}
	t.run(r)
	said := t.said(r)
	if len(said) > most {
		said = said[len(said)-most:]
	}
	for _, s := range said {
		if err := t.message(ctx, r, s, telling(s.Text), 0); err != nil {
			return err
		}
	}
	return nil
}

// bySlot adds the last slot of a job if it has no run that reached the agent, or the job's latest record if it is of such a run. ran is the
// job's latest run that did.
func (t *Tracer) bySlot(name string, ran runlog.Record) error {
	id, err := t.Home.ScheduledJob(strings.TrimSuffix(name, ".md"))
	if _, none := errors.AsType[*plaintext.Unknown](err); none || id == "" || t.Own && ran.Job != id {
		return nil
	}
	if err != nil {
		return err
	}
	latest := ran
	for r, err := range t.Runs.List() {
		if err == nil && r.Job == id {
			latest = r
			break
		}
	}
	answers, err := t.Home.Audit(time.Time{})
	if err != nil {
		return err
	}
	var last forecast.Answer
	for _, a := range answers {
		if a.Job == id {
			last = a
		}
	}
	switch {
	case last.Job != "" && last.Slot.After(latest.Started) && last.Run != latest.ID:
		t.add(Step{
			Step: Slot, Name: last.Name, Slot: &last.Slot, Outcome: last.Outcome, Run: last.Run, Why: last.Note(),
			Command: "ollim schedule audit " + last.Name,
		})
	case latest.ID != ran.ID:
		t.run(latest)
	}
	return nil
}

// run adds the step of a run, once.
func (t *Tracer) run(r runlog.Record) {
	if t.explained[r.ID] {
		return
	}
	t.explained[r.ID] = true
	r = t.Runs.CutOff(r)
	step := Step{
		Step: Run, Kind: r.Kind, At: r.Started, Run: r.ID, Name: r.Name, Outcome: cmp.Or(string(r.Outcome), "running"), Slot: r.Scheduled,
		Why: began(r), Command: "ollim run show " + r.ID,
	}
	switch r.Outcome {
	case runlog.Skipped, runlog.Paused, runlog.Gated, runlog.Refused:
		step.Step, step.Command = Slot, "ollim schedule audit "+r.Name
		if r.Scheduled == nil {
			step.Command = "ollim run show " + r.ID
		}
	}
	switch {
	case r.Audit:
		step.Why += "; its gate was closed, and gate-audit let it run all the same"
	case r.GateOff:
		step.Why += "; its gate is off"
	}
	if reason := cmp.Or(r.Error, r.Question); reason != "" {
		step.Why += "; " + reason
	} else if r.Outcome == runlog.Gated {
		step.Why += "; its gate found nothing to do" + t.gate(r.Job)
	}
	step.Why = strings.TrimPrefix(step.Why, "; ")
	t.add(step)
}

// gate says what is known about the gate of a job with gate-audit.
func (t *Tracer) gate(id string) string {
	files, err := t.Home.Jobs.Load()
	if j, known := files.ByID(id); err == nil && known {
		if _, text, err := t.Home.GateState(j); err == nil && text != "" {
			return "; " + text
		}
	}
	return ""
}

// began says why a run began.
func began(r runlog.Record) string {
	late := ""
	if r.Scheduled != nil {
		if d := r.Started.Sub(*r.Scheduled); d >= slot.Grace {
			late = fmt.Sprintf(", %s late", d.Round(time.Minute))
		}
	}
	switch {
	case r.Mode == "backtest" || r.Mode == "distil":
		return "a command started it"
	case r.Kind == string(job.Webhook) && !r.Owner:
		return "a webhook event"
	case r.Kind == string(job.Reminder) && r.Scheduled != nil:
		return "the reminder was due" + late
	case r.Scheduled != nil:
		return "its schedule" + late
	case r.OfJob() && r.Owner:
		return "the owner fired it"
	case r.Owner, r.Foreground && !r.OfJob():
		return "a message of the owner"
	case r.OfJob():
		return "a command fired it"
	}
	return ""
}
