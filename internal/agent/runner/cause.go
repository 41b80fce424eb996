package runner

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"syscall"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/notice"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
)

// Notify returns the book that notifies the owner of causes.
func (r *Runner) Notify() notify.Book {
	return notify.Book{
		Notices: r.Notices, Updates: r.Updates, Sender: r.Outbox, Zone: r.Zone, Quiet: r.Settings.Quiet, Random: r.Random, Now: r.Disk.Now,
		Number: func(ctx context.Context, id, text string) (string, error) {
			run, err := r.Runs.At(id)
			if err != nil {
				return "", err
			}
			return r.Mail().Number(ctx, run, outbox.Failure, text)
		},
	}
}

// Mail returns what sends the messages of runs to the owner.
func (r *Runner) Mail() notify.Mail {
	return notify.Mail{Runs: r.Runs, Sessions: r.Sessions, Updates: r.Updates, Outbox: r.Outbox, Now: r.Disk.Now, Warn: r.warn}
}

// overload returns the temporary refusal of the service that ended a run: the run's error or, if its time was up, the last refusal. It is
// nil if something else ended the run.
func (w *work) overload(cause error) error {
	var overloaded *engine.Overloaded
	switch {
	case errors.As(cause, &overloaded):
		return overloaded
	case !errors.Is(cause, errTimeout):
		return nil
	}
	n, why, err := w.run.Refusals()
	if w.r.warn(err); n < 2 { // a single refusal may have another reason
		return nil
	}
	return errors.New(why)
}

// faultOf returns the kind of cause that made a run fail; "" if the run did not fail, was cancelled, or failed by the job's own fault.
func (w *work) faultOf(cause error) notify.Kind {
	var limit *spend.Limit
	switch {
	case cause == nil, errors.Is(cause, context.Canceled):
		return ""
	case w.overload(cause) != nil:
		return notify.Service
	case errors.Is(cause, syscall.ENOSPC):
		return notify.Disk
	case errors.As(cause, &limit) && !limit.Until.IsZero():
		return notify.Limit
	case errors.Is(cause, engine.ErrKey):
		return notify.Key
	case errors.Is(cause, ErrNoEngine), errors.Is(cause, engine.ErrSetup):
		return notify.Engine
	case errors.Is(cause, engine.ErrUnavailable):
		return notify.Service
	}
	return ""
}

// reportFailure notifies the owner of the cause of a run's failure.
func (t Reports) failure(ctx context.Context, record runlog.Record, what string) {
	_, err := t.r.Notify().Open(ctx, notify.Failure(record, what, t.r.Home))
	t.r.warn(err)
}

// reportRefusal notifies the owner why a run is refused. fires is the number of refused fires to count.
func (r *Runner) reportRefusal(ctx context.Context, record runlog.Record, cause error, fires int) {
	c := r.refusalOf(record, cause)
	c.Jobs = []notify.Affected{{ID: record.Job, Name: cmp.Or(record.Label(), record.Job), Count: notice.Count{Failed: fires}}}
	c.Run = record.ID
	_, err := r.Notify().Open(ctx, c)
	r.warn(err)
}

func (r *Runner) refusalOf(record runlog.Record, cause error) notify.Cause {
	why := &refusal{}
	switch errors.As(cause, &why); {
	case why.notice.Kind != "":
		return why.notice
	case errors.Is(cause, ErrNoEngine):
		return notify.Cause{
			Kind: notify.Engine, Subject: "none", Name: "The engine", Text: notify.NotRun(record.Label(), record.Error),
			Remedy: "`ollim config set engine claude-code`, or native",
		}
	}
	return notify.Cause{
		Kind: notify.Refused, Subject: record.Job, Name: record.Label(), Text: notify.NotRun(record.Label(), record.Error),
		Remedy: "correct its file: `ollim check` and `ollim doctor` name faults",
	}
}

// recovered closes the causes that a run which ended ok, unreported or waiting shows to be over. If the engine, its service or a limit
// caused a failure after the run began, that cause stays open: the next run may still be refused.
func (w *work) recovered(ctx context.Context) {
	if w.r.Notices.Empty() || w.run.Outcome != runlog.OK && w.run.Outcome != runlog.Unreported && w.run.Outcome != runlog.Waiting {
		return
	}
	book := w.r.Notify()
	open, err := book.OpenCauses()
	w.r.warn(err)
	answered := w.run.Turns > 0
	for key, e := range open {
		over, how, since := false, "", !w.run.Started.Before(e.Since)
		if e.Kind == string(notify.Gone) && e.Subject == w.run.Job {
			w.r.warn(book.Drop(ctx, key))
		}
		switch notify.Kind(e.Kind) {
		case notify.Service, notify.Key:
			over = answered && since && e.Subject == w.run.Engine
		case notify.Engine:
			over = answered && since && (e.Subject == w.run.Engine || e.Subject == "none")
		case notify.Limit, notify.Reserved:
			over, how = w.run.Accounted && since && !w.spec.Policy.Owner, notify.NoLonger
		case notify.Unit:
			over = w.run.Job != "" && (strings.HasSuffix(e.Subject, "-"+w.run.Job+".service") || strings.HasSuffix(e.Subject, "@"+w.run.Job+".service"))
		case notify.Job, notify.Refused, notify.Approval:
			over = e.Subject == w.run.Job && w.run.Job != "" && w.run.Outcome != runlog.Waiting
			if notify.Kind(e.Kind) == notify.Approval {
				how = "is approved"
			}
		}
		if over {
			w.r.warn(book.Close(ctx, key, how))
		}
	}
}
