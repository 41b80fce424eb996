package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/ledger"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
)

// Later is the error of a run that did not take place because other runs have reserved the rest of a limit, or of a queued run at any
// limit. The run left no record, and its slot can be used by another attempt.
type Later struct{ Limit *spend.Limit }

func (e *Later) Error() string { return e.Limit.Error() }

// Refusal returns the refusal of a run that the limit keeps from running.
func (e *Later) Refusal() error { return atLimit(e.Limit) }

// overLimit is the error of a run that needs more than a limit has left.
type overLimit struct{ limit *spend.Limit }

func (e *overLimit) Error() string {
	return "spending limit: " + strings.TrimPrefix(e.limit.Error(), "limit ")
}

func (e *overLimit) Unwrap() []error { return []error{engine.ErrMaxCost, e.limit} }

// account reserves and settles the money of a run.
type account struct {
	run   *runlog.Run
	spec  Spec
	spend spend.Book
	runs  runlog.Book
	warn  func(error)
	waits bool // every reservation and raise waits for the disk, else only those after the first request
}

// reserve reserves the likely cost of the run, and notes it in the record, which the caller saves. The beginning of a run of a
// slot is on disk when it returns. It returns the most that the run may cost, in USD; 0 is no limit. At a limit the run is refused.
func (a *account) reserve(ctx context.Context) (float64, error) {
	limits := a.spec.Limits
	if IsScript(a.run.Engine) {
		return limits.Cost, a.run.Begin(ctx) // a script costs nothing
	}
	claim := spend.Claim{Run: a.run.Account(), Job: a.run.Job, Most: limits.Cost, Force: a.spec.Policy.Owner}
	count := func(r *runlog.Run, reserved float64) {
		r.Accounted, r.Owner, r.Reserved = true, claim.Force, finite(reserved)
	}
	claim.With = func(reserved float64) []ledger.Fact {
		granted := *a.run // the run itself is not counted until this is on disk
		count(&granted, reserved)
		return granted.Began()
	}
	grant, err := a.spend.Reserve(ctx, claim, a.look)
	var limit *spend.Limit
	if errors.As(err, &limit) {
		return 0, atLimit(limit)
	}
	if err != nil {
		return 0, err
	}
	if limits.Typed && limits.Cost > 0 {
		grant.Most = limits.Cost
	}
	count(a.run, grant.Reserved)
	if a.waits = a.waits || a.run.Engine != engine.Native; a.waits { // a raise pays for several requests
		err = a.spend.Sync()
	}
	return finite(grant.Most), err
}

// finite returns an amount as engines expect it: 0 instead of infinity for no limit.
func finite(usd float64) float64 {
	if math.IsInf(usd, 1) {
		return 0
	}
	return usd
}

// atLimit returns the refusal of a run that may not spend anything.
func atLimit(limit *spend.Limit) error {
	return &Refusal{Kind: ErrRefused, Reason: limit.Error(), Notice: notify.AtLimit(limit), cause: limit}
}

// raise returns the function with which the engine raises the reservation of the run before each request; nil for an engine that costs
// nothing. From the second call on, what was reserved is on disk when it returns: a power failure hides one request at most. Since each raise
// may wait for the disk, it takes half more than the engine could do without, up to the highest cost of the run, granted: the next
// requests then rarely need another one.
func (a *account) raise(granted float64) func(ctx context.Context, least, most float64) (float64, error) {
	if !a.run.Accounted || a.run.Reserved == 0 {
		return nil
	}
	have := a.run.Reserved
	return func(ctx context.Context, least, most float64) (float64, error) {
		if have >= most {
			return most, a.beforeRequest()
		}
		more := most + (most-least)/2
		if granted > 0 {
			more = max(most, min(more, granted))
		}
		got, err := a.spend.Raise(ctx, a.run.Account(), least, more, a.look)
		var limit *spend.Limit
		if errors.As(err, &limit) {
			return 0, &overLimit{limit}
		}
		have = max(have, got)
		return min(got, most), errors.Join(err, a.beforeRequest())
	}
}

// beforeRequest waits until what was reserved is on disk, unless nothing can have been spent yet.
func (a *account) beforeRequest() error {
	if !a.waits {
		a.waits = true
		return nil
	}
	return a.spend.Sync()
}

// look returns whether another run may still spend, else what it has cost. A negative cost is unknown, and the whole reservation counts.
func (a *account) look(account string) (cost float64, alive bool) {
	record, err := a.runs.Load(runlog.OfAccount(account))
	if err != nil {
		return -1, false
	}
	if record.Account() != account { // an earlier part, which was settled when the run continued
		return -1, false
	}
	if a.runs.Alive(record) {
		return 0, true
	}
	bill, err := a.runs.Bill(record)
	if err != nil || !record.Done() && record.Rebooted() { // a power failure may have lost its last events
		return -1, false
	}
	return max(bill.Cost-record.Settled, 0), false
}

// most returns the most that a run may cost, in USD, by its job or --max-cost and by spend.per-run; 0 is no limit.
func (s Spec) most(perRun float64) float64 {
	perRun = finite(perRun)
	if cost := s.Limits.Cost; cost > 0 && (perRun == 0 || s.Limits.Typed || cost < perRun) {
		return cost
	}
	return perRun
}

// remedy adds what the owner can do to the error of a run that reached its own limit. The error of a daily or monthly limit already says
// until when the limit lasts.
func (a *account) remedy(session string, err error) error {
	if !errors.Is(err, engine.ErrMaxCost) || errors.As(err, new(*overLimit)) {
		return err
	}
	most := a.spec.most(a.spend.Limits.PerRun)
	if next := (*engine.Unaffordable)(nil); errors.As(err, &next) {
		most = max(most, next.Next+next.Spent)
	}
	raise := strings.Join(a.raised(math.Ceil(most*200)/100), " and ")
	if so, soErr := a.run.SoFar(); session != "" && soErr == nil && so.ContextBefore > shortSession {
		return fmt.Errorf("%w; to shorten the session: ollim session compact %s Keep what matters; to allow more: %s", err, session, raise)
	}
	return fmt.Errorf("%w; to allow more: %s", err, raise)
}

// raised returns the settings with which a run like this one may cost most, in USD.
func (a *account) raised(most float64) (steps []string) {
	own, enough := a.spec.Limits.Cost, engine.USD(most)
	switch {
	case own == 0 || own >= most:
	case a.spec.Limits.Typed:
		return []string{"--max-cost " + enough}
	case a.run.Kind == string(job.Reminder):
		steps = append(steps, fmt.Sprintf("set max-cost: %s in %s", enough, a.run.Path))
	default:
		steps = append(steps, fmt.Sprintf("set max-cost: %s with ollim %s edit %s", enough, a.run.Kind, a.run.Name))
	}
	if perRun := finite(a.spend.Limits.PerRun); perRun > 0 && perRun < most {
		steps = append(steps, "ollim config set spend.per-run "+enough)
	}
	return steps
}

// shortSession is the length in tokens of a session that a compaction would not make much cheaper.
const shortSession = 8000
