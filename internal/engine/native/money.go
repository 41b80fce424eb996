package native

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// query asks the service, for no more than the run may cost, and notes what an answer that broke off has cost. An answer that
// needs more than the usual tokens is asked for again with as many as the model can give, unless somebody has read it.
func (t *turn) query(ctx context.Context, q provider.Request, delta func(provider.Delta) error) (provider.Answer, error) {
	all := capacity(q)
	usual := min(all, engine.UsualAnswer+budget(q.Thinking))
	if delta != nil || !t.model.Priced {
		usual = all
	}
	a, err := t.try(ctx, q, delta, leastOutput, usual)
	if err != nil || q.MaxTokens <= usual || !reached(a, usual) {
		return a, err
	}
	why := fmt.Sprintf("the answer needs more than %d tokens", usual)
	if err := errors.Join(t.book(a.Usage, a.Stop), t.sink(runlog.Event{Type: runlog.Retry, Text: why})); err != nil {
		return a, err
	}
	return t.try(ctx, q, delta, min(all, 2*usual), all)
}

// reached reports whether an answer ended at its limit, and not at one of the service's.
func reached(a provider.Answer, limit int) bool {
	return a.Stop == provider.MaxTokens && a.Usage.Out >= limit/2
}

// capacity is how many tokens an answer may have, thoughts included.
func capacity(q provider.Request) int {
	if q.Most > 0 {
		return q.Most
	}
	return q.MaxTokens + budget(q.Thinking)
}

// budget is the tokens of thoughts that a number asks for.
func budget(thinking string) int {
	n, err := strconv.Atoi(thinking)
	if err != nil {
		return 0
	}
	return max(0, n)
}

// try asks for an answer of at most a number of tokens, or of fewer where the run may not cost so much, but not below least.
func (t *turn) try(ctx context.Context, q provider.Request, delta func(provider.Delta) error, least, most int) (provider.Answer, error) {
	input, tokens, err := t.afford(ctx, least, most, q)
	if err != nil {
		return provider.Answer{}, err
	}
	cut := tokens < min(q.MaxTokens, most)
	if t.model.Priced {
		q.MaxTokens, q.Most = min(q.MaxTokens, tokens), tokens
	}
	begin := t.e.Now()
	a, err := t.e.Service.Ask(ctx, q, delta)
	t.asking += t.e.Now().Sub(begin)
	if err == nil && cut && reached(a, tokens) {
		return a, fmt.Errorf("%w: the answer needs more than %d tokens, and more may not be spent", engine.ErrMaxCost, tokens)
	}
	if ctx.Err() == nil && !errors.Is(err, provider.ErrCut) && !errors.Is(err, provider.ErrGarbled) {
		return a, err
	}
	said := bytesOf(a.Message) / engine.BytesPerToken
	if a.Usage != (runlog.Usage{}) { // as it began: what was said since is not counted
		a.Usage.Out = max(a.Usage.Out, said)
		return a, err
	}
	lost, _ := t.model.Cost(model.Tokens{Out: said})
	return a, errors.Join(err, t.assume(input+lost))
}

// assume counts the price of an answer that broke off before the service told what it used.
func (t *turn) assume(usd float64) error {
	t.cost, t.booked = t.cost+usd, true
	return t.sink(runlog.Event{Type: runlog.UsageEvent, Cost: usd})
}

// afford reserves the price of a question and of its answer of least to most tokens. It returns the price expected of the
// question, in USD, and how many tokens the answer may have. The error is an ErrMaxCost.
func (t *turn) afford(ctx context.Context, least, most int, q provider.Request) (input float64, tokens int, err error) {
	if !t.model.Priced {
		return 0, most, nil
	}
	length := t.expected(q)
	input = t.inputPrice(length)
	asked, _ := t.model.Cost(model.Tokens{In: length})
	answered, _ := t.model.Cost(model.Tokens{In: length, Out: 1e6})
	each := (answered - asked) / 1e6
	low, high := input+each*float64(min(least, most)), input+each*float64(most)
	spent, r := t.request.Limits.Spent+t.cost, t.request
	if r.Limits.MaxCost > 0 && spent+low > r.Limits.MaxCost {
		return 0, 0, t.unaffordable(ctx, spent, low)
	}
	if r.Limits.MaxCost > 0 {
		high = min(high, r.Limits.MaxCost-spent)
	}
	if r.Limits.Raise != nil {
		granted, err := r.Limits.Raise(ctx, spent+low, spent+high)
		if err != nil {
			return 0, 0, err
		}
		high = granted - spent
	}
	if tokens = most; each > 0 {
		tokens = max(1, min(most, int((high-input)/each+1e-6)))
	}
	usual := input + each*float64(engine.UsualAnswer+budget(q.Thinking))
	return input, tokens, t.sink(runlog.Event{Type: runlog.Request, Most: min(high, usual)})
}

// unaffordable is the error of a request that may cost low USD and would exceed MaxCost. Where a limit for all runs leaves no more,
// as Raise tells, the error is that limit.
func (t *turn) unaffordable(ctx context.Context, spent, low float64) error {
	r := t.request
	if r.Limits.Raise != nil {
		if _, err := r.Limits.Raise(ctx, spent+low, spent+low); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the next request may cost %.4f USD, and %.4f of %.4f are spent", engine.ErrMaxCost, low, spent, r.Limits.MaxCost)
}

// inputPrice is what a question of so many tokens is expected to cost: those that the service has just put into its cache, or
// read from it, are read again, and of the others it asks the most that it may.
func (t *turn) inputPrice(tokens int) float64 {
	read := 0
	if t.e.Now().Sub(t.cachedAt) < engine.CacheLife {
		read = min(t.cached, tokens)
	}
	return t.model.Question(tokens, read)
}

// expected is how many tokens a question has at most: those that the service has counted, and a guess at the rest.
func (t *turn) expected(q provider.Request) int {
	counted, rest, entries := 0, 0, 0
	for i := len(t.entries) - 1; i >= 0; i-- {
		if counted == 0 {
			counted = t.entries[i].Tokens
			if counted == 0 {
				rest += bytesOf(t.entries[i].Message)
			}
		}
		entries += bytesOf(t.entries[i].Message)
	}
	if counted == 0 {
		rest += len(q.System)
		for _, tool := range q.Tools {
			rest += len(tool.Name) + len(tool.Description) + len(tool.Schema)
		}
	}
	asked := 0
	for _, m := range q.Messages {
		asked += bytesOf(m)
	}
	return counted + (rest+max(0, asked-entries))/engine.Uncounted
}
