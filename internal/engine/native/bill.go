package native

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/request"
	"github.com/ollim/ollim/internal/state/runlog"
)

// bill adds up what a turn costs, and reserves the possible cost of its next question. Amounts are in USD.
type bill struct {
	model  model.Model
	limits engine.Limits
	local  bool
	full   int // length, in tokens, at which the conversation is compacted
	sink   engine.Sink
	now    func() time.Time

	usage  runlog.Usage
	cost   float64
	length int           // length of the conversation in tokens after the latest answer; 0 if unknown
	events int           // number of usage events recorded
	asking time.Duration // response time of the service since the last usage event
	cached cached
}

// cached is the state of the service's cache after its latest answer.
type cached struct {
	tokens int
	at     time.Time
}

// book adds the usage of an answer.
func (b *bill) book(u runlog.Usage, stop string) error {
	e := b.used(&u)
	e.Stop, e.APIMillis = stop, b.asking.Milliseconds()
	b.cached, b.asking = cached{u.CacheRead + u.CacheWrite, b.now()}, 0
	return b.record(e)
}

// used adds tokens, and returns their usage event with the price.
func (b *bill) used(u *runlog.Usage) runlog.Event {
	cost, priced := b.model.Cost(model.Tokens(*u))
	b.usage = b.usage.Add(*u)
	return runlog.Event{Usage: u, Cost: cost, Unpriced: !priced && !b.local}
}

// bookPart adds the known usage of an answer that broke off.
func (b *bill) bookPart(u runlog.Usage) error {
	if u == (runlog.Usage{}) {
		return nil
	}
	return b.book(u, "")
}

// close records that a turn without an answer cost nothing.
func (b *bill) close() error {
	if b.events > 0 {
		return nil
	}
	return b.record(runlog.Event{})
}

func (b *bill) record(e runlog.Event) error {
	e.Type, e.Context, e.Window, e.CompactAt = runlog.UsageEvent, b.length, b.model.Window, b.full
	b.events, b.cost = b.events+1, b.cost+e.Cost
	return b.sink(e)
}

// afford reserves the price of a question of at most length tokens and of its answer. The answer may have least to most tokens, and usual
// are expected. The error is an ErrMaxCost.
func (b *bill) afford(ctx context.Context, length, least, most, usual int) (input float64, tokens int, err error) {
	if !b.model.Priced {
		return 0, most, nil
	}
	input = b.inputPrice(length)
	asked, _ := b.model.Cost(model.Tokens{In: length})
	answered, _ := b.model.Cost(model.Tokens{In: length, Out: 1e6})
	each := (answered - asked) / 1e6
	low, high := input+each*float64(min(least, most)), input+each*float64(most)
	spent, l := b.limits.Spent+b.cost, b.limits
	if l.MaxCost > 0 && spent+low > l.MaxCost {
		return input, 0, b.unaffordable(ctx, spent, low)
	}
	if l.MaxCost > 0 {
		high = min(high, l.MaxCost-spent)
	}
	if l.Raise != nil {
		granted, err := l.Raise(ctx, spent+low, spent+high)
		if err != nil {
			return input, 0, err
		}
		high = granted - spent
	}
	tokens = most
	if each > 0 {
		tokens = max(1, min(most, int((high-input)/each+1e-6)))
	}
	expected := input + each*float64(usual)
	return input, tokens, b.sink(runlog.Event{Type: runlog.Request, Most: min(high, expected)})
}

// unaffordable returns the error of a question that may cost low and would exceed MaxCost. If Raise reports that a limit for all runs is
// the reason, the error is that limit.
func (b *bill) unaffordable(ctx context.Context, spent, low float64) error {
	if b.limits.Raise != nil {
		if _, err := b.limits.Raise(ctx, spent+low, spent+low); err != nil {
			return err
		}
	}
	return &engine.Unaffordable{Next: low, Spent: spent, Most: b.limits.MaxCost}
}

// inputPrice returns the expected price of a question with so many tokens. What the service has just read from its cache or written to it
// will be read from there again. The rest counts with the highest price.
func (b *bill) inputPrice(tokens int) float64 {
	read := 0
	if b.now().Sub(b.cached.at) < engine.CacheLife {
		read = min(b.cached.tokens, tokens)
	}
	return b.model.Question(tokens, read)
}

// sent returns what keeps the turn's requests, and their answers with the price.
func (t *turn) sent() engine.Keep {
	if t.request.Run.Sent == nil {
		return nil
	}
	return func(body []byte) engine.Kept {
		kept := t.request.Run.Sent(body)
		return engine.Kept{Begun: kept.Begun, Answered: func(a request.Answer) {
			if a.Usage != nil {
				a.Cost, _ = t.how.model.Cost(model.Tokens(*a.Usage))
			}
			kept.Answered(a)
		}}
	}
}
