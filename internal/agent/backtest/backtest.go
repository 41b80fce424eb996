// Package backtest asks recorded runs of a job again, with another model, another body or another amount of thinking, and compares what the
// agent decides with what it decided then. The first request of a run is sent with the change. Tools answer from the record of the run, and
// nothing executes: what the agent wants to send, to write or to start is noted. A use of a tool that has no answer in the record makes the
// run undecided, with that use; no answer is ever guessed.
//
// A backtest is a directory, state/backtests/ID: what was asked for in plan.json, each answer of the model in answers.jsonl, and the verdict
// about each run in verdicts.jsonl. An answer is stored before it is used. A backtest that is continued asks for no stored answer again. ID is
// the id of the run whose record has its cost.
package backtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Plan is what a backtest does.
type Plan struct {
	ID       string    `json:"id"`
	Job      string    `json:"job"`  // the job's id
	Name     string    `json:"name"` // and its name
	Begun    time.Time `json:"begun"`
	Runs     []string  `json:"runs"`               // the runs that are asked again, newest first
	Model    string    `json:"model,omitempty"`    // "": that of the record
	Thinking string    `json:"thinking,omitempty"` // "": that of the record
	Body     *string   `json:"body,omitempty"`     // nil: that of the record
	Baseline bool      `json:"baseline,omitempty"` // each run is also asked without a change
	Judge    string    `json:"judge,omitempty"`    // the model that compares the facts of other texts; "": none does
	Live     []string  `json:"live,omitempty"`     // reading tools that are used now if the record has no answer
	MaxCost  float64   `json:"max_cost,omitempty"` // USD; 0: no limit
	Parallel int       `json:"parallel"`           // runs that are asked at the same time
}

// Changes reports whether anything differs from the record.
func (p Plan) Changes() bool { return p.Model != "" || p.Thinking != "" || p.Body != nil }

// Change says what is changed, and whether the runs are asked without a change as well.
func (p Plan) Change() string {
	var list []string
	if p.Model != "" {
		list = append(list, "model "+p.Model)
	}
	if p.Thinking != "" {
		list = append(list, "thinking "+p.Thinking)
	}
	if p.Body != nil {
		list = append(list, "body")
	}
	if p.Baseline {
		list = append(list, "baseline")
	}
	return strings.Join(list, ", ")
}

// Backtest is one that is carried out.
type Backtest struct {
	Plan

	Book  Book
	Runs  runlog.Book
	Asked request.Book
	Asker

	Live Live                     // nil: no tool is used now
	Hide func(text string) string // replaces the values of secrets
	// Refuses returns why a run may not use a tool; "" if it may. nil: it may use all.
	Refuses func(r runlog.Record, tool string, input []byte) string
	// Raise raises what the backtest has reserved of the spending limits to between least and most USD; nil: no limit binds it.
	Raise func(ctx context.Context, least, most float64) (float64, error)
	Done  func(Verdict) // is called with each verdict; may be nil
	Now   func() time.Time
}

// Live uses a reading tool now, as the run was allowed to.
type Live func(ctx context.Context, r runlog.Record, tool string, input []byte) engine.ToolResult

// ErrMoney is the error of a backtest that a limit of cost ended. The verdicts that were reached are kept.
var ErrMoney = errors.New("cost limit of the backtest reached")

// variant is one way in which a run is asked.
type variant struct {
	run      string
	baseline bool
}

// Run asks each run that has no verdict yet, and returns all verdicts. The error is an ErrMoney, that of ctx, or one of the disk.
func (b *Backtest) Run(ctx context.Context) ([]Verdict, error) {
	held, err := b.Book.hold(b.ID)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	known, err := b.Book.Verdicts(b.Plan)
	if err != nil {
		return nil, err
	}
	paid, err := b.Book.answers(b.ID)
	if err != nil {
		return nil, err
	}
	failing, fail := context.WithCancelCause(ctx) // after the first failure no run begins; those in progress go on, as they are paid for
	defer fail(nil)
	open := make(chan variant)
	var working sync.WaitGroup
	var mu sync.Mutex
	money := newBudget(b.MaxCost, known, b.Raise)
	for range max(1, b.Parallel) {
		working.Go(func() {
			for v := range open {
				verdict, err := b.verdict(ctx, v, paid, money)
				mu.Lock()
				if err == nil {
					err = b.Book.add(b.ID, verdict)
				}
				if err != nil {
					fail(err)
				} else if known = append(known, verdict); b.Done != nil {
					b.Done(verdict)
				}
				mu.Unlock()
			}
		})
	}
	for _, v := range b.open(known) {
		if failing.Err() != nil {
			break
		}
		select {
		case open <- v:
		case <-failing.Done():
		}
	}
	close(open)
	working.Wait()
	b.sort(known)
	return known, context.Cause(failing)
}

// open returns what has no verdict yet.
func (b *Backtest) open(known []Verdict) (open []variant) {
	for _, run := range b.Plan.Runs {
		if b.Changes() {
			open = append(open, variant{run, false})
		}
		if b.Baseline {
			open = append(open, variant{run, true})
		}
	}
	return slices.DeleteFunc(open, func(v variant) bool {
		return slices.ContainsFunc(known, func(k Verdict) bool { return k.Run == v.run && k.Baseline == v.baseline })
	})
}

// sort sorts verdicts by the order of the runs, that without a change after that with it.
func (p Plan) sort(list []Verdict) {
	place := func(v Verdict) int {
		at := 2 * slices.Index(p.Runs, v.Run)
		if v.Baseline {
			at++
		}
		return at
	}
	slices.SortStableFunc(list, func(a, b Verdict) int { return place(a) - place(b) })
}

// verdict asks a run, and compares what the agent decides. A run that cannot be asked is undecided. An error ends the backtest.
func (b *Backtest) verdict(ctx context.Context, v variant, paid *answers, money *budget) (Verdict, error) {
	begun := b.Now()
	c, err := b.recorded(v)
	out := Verdict{Run: v.run, Baseline: v.baseline, Before: append([]Decision{}, c.Decisions...), Now: []Decision{}, Was: c.was()}
	if err == nil {
		var now outcome
		now, err = b.ask(ctx, c, paid.of(v), money)
		out.Now, out.Is, out.Live = append(out.Now, now.decisions...), Use{Cost: now.cost, Usage: now.usage}, now.live
		out.Is.Seconds = b.Now().Sub(begun).Seconds()
	}
	if ended := ending(ctx, err); ended != nil {
		return out, ended
	}
	var unknown *unrecorded
	switch {
	case errors.As(err, &unknown):
		out.Result, out.Call = Undecided, &Call{unknown.tool, unknown.input}
		out.Why = unknown.Error()
	case err != nil:
		out.Result, out.Why = Undecided, err.Error()
	default:
		out.compare()
	}
	if out.Result == Different && b.Judge != "" {
		err := b.facts(ctx, &out, paid.of(v), money)
		if ended := ending(ctx, err); ended != nil {
			return out, fmt.Errorf("the judge: %w", ended)
		}
		if err != nil {
			out.Facts = Unsure
		}
	}
	for _, list := range [][]Decision{out.Before, out.Now} {
		for i := range list {
			list[i].Text = b.Hide(list[i].Text)
		}
	}
	out.Why = b.Hide(out.Why)
	return out, nil
}

// ending returns the error with which a backtest ends because of the error of one run; nil if that concerns the run alone.
func ending(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, engine.ErrMaxCost):
		return fmt.Errorf("%w: %w", ErrMoney, err)
	case errors.As(err, new(*engine.Overloaded)), errors.Is(err, provider.ErrCut), errors.Is(err, provider.ErrGarbled):
		return fmt.Errorf("%w: %w", engine.ErrUnavailable, err) // it may be over when the backtest is continued
	case errors.Is(err, engine.ErrUnavailable):
		return err // the next run would fail as well
	}
	return nil
}
