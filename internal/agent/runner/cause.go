package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

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
		Notices: r.Notices, Updates: r.Updates, Sender: r.Outbox, Zone: r.Zone, Quiet: r.Quiet, Random: r.Random, Now: r.Disk.Now,
		Number: func(ctx context.Context, id, text string) (string, error) {
			run, err := r.Runs.At(id)
			if err != nil {
				return "", err
			}
			return r.number(ctx, run, outbox.Failure, text)
		},
	}
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
	if w.warn(err); n < 2 { // a single refusal may have another reason
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

// Remedies of several causes.
const (
	askRemedy = "`ollim doctor --ask` asks each engine a question for about a cent"
	logOf     = "`ollim run log %s` shows what happened"
)

// CauseOf returns the cause of a run's failure. what says how the run ended; the text uses it if the fault is the job's own.
func (r *Runner) CauseOf(record runlog.Record, what string) notify.Cause {
	c := notify.Cause{
		Kind: notify.Kind(record.Fault), Subject: record.Engine, Run: record.ID, Remedy: fmt.Sprintf(logOf, record.ID),
		Jobs: []notify.Affected{{ID: record.Job, Name: record.Label(), Count: notice.Count{Failed: 1}}},
	}
	switch c.Kind {
	case notify.Service:
		c.Name = "The service of the engine " + record.Engine
		c.Text = fmt.Sprintf("The model service of the engine %s is overloaded or cannot be reached: %s", record.Engine, record.Error)
		c.Remedy = "wait until it passes; " + askRemedy
	case notify.Key:
		c.Name = "The key of the engine " + record.Engine
		c.Text = fmt.Sprintf("The engine %s has no key or login that works: %s", record.Engine, record.Error)
		c.Remedy = keyRemedy(record.Engine) + "; then " + askRemedy
	case notify.Engine:
		c.Name, c.Remedy = "The engine "+record.Engine, "`ollim doctor` says what is missing"
		c.Text = fmt.Sprintf("The engine %s cannot be used: %s", record.Engine, record.Error)
	case notify.Disk:
		c.Subject, c.Name, c.Remedy = "full", "The disk", "free disk space: `df -h "+string(r.Home)+"`"
		c.Text = "The disk is full: " + record.Error
	case notify.Limit:
		c.Subject, c.Name, c.Remedy = "spend", "The spending limit", "`ollim cost` shows what was spent, `ollim config list` the limits"
		if limit := limitIn(record.Error); limit != nil {
			same := limitCause(limit)
			c.Subject, c.Name, c.Remedy, c.Until = same.Subject, same.Name, same.Remedy, same.Until
		}
		c.Text = failure(record.Label(), "ended early", record.Error)
	default:
		c.Kind, c.Subject, c.Name = notify.Job, record.Job, record.Label()
		c.Text = failure(record.Label(), what, record.Error)
	}
	return c
}

func keyRemedy(name string) string {
	if name == engine.ClaudeCode {
		return "`claude auth login`, or `ollim secret set engine.ANTHROPIC_API_KEY`"
	}
	return "`ollim secret set engine.ANTHROPIC_API_KEY`, or `engine.OPENAI_API_KEY`, with a valid key"
}

var limitText = regexp.MustCompile(`\b(runs-per-day|per-day|per-month): .* of ([0-9.]+).*, until ([0-9TZ:+-]+)`)

// limitIn returns the daily or monthly limit that the error of a run names; nil if it names none. The cause is then the same whether the
// limit ended the run or refused it.
func limitIn(text string) *spend.Limit {
	m := limitText.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	allowed, err := strconv.ParseFloat(m[2], 64)
	until, untilErr := time.Parse(time.RFC3339, m[3])
	if err == nil && untilErr == nil {
		return &spend.Limit{Key: m[1], Allowed: allowed, Until: until}
	}
	return nil
}

// limitCause returns the cause of a daily or monthly limit that is reached.
func limitCause(limit *spend.Limit) notify.Cause {
	unit := map[string]string{"per-day": "day's", "runs-per-day": "day's", "per-month": "month's"}[limit.Key]
	c := notify.Cause{
		Kind: notify.Limit, Subject: limit.Key, Name: "The " + unit + " spending limit", Until: limit.Until,
		Text: "No automatic run starts: " + limit.Error(),
	}
	raised := strconv.FormatFloat(max(2*limit.Allowed, 1), 'f', -1, 64)
	c.Remedy = fmt.Sprintf("`ollim cost` shows what was spent; `ollim config set spend.%s %s` raises it", limit.Key, raised)
	if limit.Until.IsZero() {
		c.Name = "The spending limit " + limit.Key
		c.Remedy = "`ollim config set spend.per-run 1.00` lets runs start again"
	}
	return c
}

// reportFailure notifies the owner of the cause of a run's failure.
func (r *Runner) reportFailure(ctx context.Context, record runlog.Record, what string) {
	_, err := r.Notify().Open(ctx, r.CauseOf(record, what))
	r.warn(err)
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
			Kind: notify.Engine, Subject: "none", Name: "The engine", Text: refusedJob(record.Label(), record.Error),
			Remedy: "`ollim config set engine claude-code`, or native",
		}
	}
	return notify.Cause{
		Kind: notify.Refused, Subject: record.Job, Name: record.Label(), Text: refusedJob(record.Label(), record.Error),
		Remedy: "correct its file: `ollim check` and `ollim doctor` name faults",
	}
}

// recovered closes the causes that a run which ended ok, unreported or waiting shows to be over. If the engine, its service or a limit
// caused a failure after the run began, that cause stays open: the next run may still be refused.
func (w *work) recovered(ctx context.Context) {
	if w.Notices.Empty() || w.run.Outcome != runlog.OK && w.run.Outcome != runlog.Unreported && w.run.Outcome != runlog.Waiting {
		return
	}
	book := w.Notify()
	open, err := book.OpenCauses()
	w.warn(err)
	answered := w.run.Turns > 0
	for key, e := range open {
		over, how, since := false, "", !w.run.Started.Before(e.Since)
		if e.Kind == string(notify.Gone) && e.Subject == w.run.Job {
			w.warn(book.Drop(ctx, key))
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
			w.warn(book.Close(ctx, key, how))
		}
	}
}
