package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// query asks the service within the cost limit of the run, and records what an answer that broke off has cost. An answer that needs more
// than the usual tokens is requested again with the model's limit, unless a part of it was shown.
func (t *turn) query(ctx context.Context, q provider.Request, delta func(text string) error) (provider.Answer, error) {
	all := cmp.Or(max(0, q.Most), q.MaxTokens+budget(q.Thinking)) // limit of the answer, including thoughts, in tokens
	usual := min(all, usualAnswer(q))
	if delta != nil || !t.how.model.Priced {
		usual = all
	}
	a, err := t.try(ctx, q, delta, leastOutput, usual)
	if err != nil || q.MaxTokens <= usual || !reached(a, usual) {
		return a, err
	}
	why := fmt.Sprintf("the answer needs more than %d tokens", usual)
	if err := errors.Join(t.bill.book(a.Usage, a.Stop), t.sink(runlog.Event{Type: runlog.Retry, Text: why})); err != nil {
		return a, err
	}
	return t.try(ctx, q, delta, min(all, 2*usual), all)
}

// reached reports whether an answer ended at this limit, and not at one of the service.
func reached(a provider.Answer, limit int) bool {
	return a.Stop == provider.MaxTokens && a.Usage.Out >= limit/2
}

// usualAnswer returns the expected maximum of tokens in an answer.
func usualAnswer(q provider.Request) int { return engine.UsualAnswer + budget(q.Thinking) }

// budget returns the tokens for thoughts, if thinking is a number.
func budget(thinking string) int {
	n, err := strconv.Atoi(thinking)
	if err != nil {
		return 0
	}
	return max(0, n)
}

// try asks for an answer of at most most tokens, or fewer if the run may not cost as much, but at least least.
func (t *turn) try(ctx context.Context, q provider.Request, delta func(text string) error, least, most int) (provider.Answer, error) {
	input, tokens, err := t.bill.afford(ctx, expected(t.talk.entries, q), least, most, usualAnswer(q))
	if err != nil {
		return provider.Answer{}, err
	}
	cut := tokens < min(q.MaxTokens, most)
	if t.how.model.Priced {
		q.MaxTokens, q.Most = min(q.MaxTokens, tokens), tokens
	}
	begin := t.e.Now()
	a, err := t.e.Service.Ask(ctx, q, delta)
	t.bill.asking += t.e.Now().Sub(begin)
	said := bytesOf(a.Message) / engine.BytesPerToken
	if !possible(a.Usage) {
		a.Usage = runlog.Usage{In: expected(t.talk.entries, q), Out: said}
	}
	if err == nil && cut && reached(a, tokens) {
		return a, fmt.Errorf("%w: the answer needs more than %d tokens, which exceeds the limit", engine.ErrMaxCost, tokens)
	}
	if ctx.Err() == nil && !errors.Is(err, provider.ErrCut) && !errors.Is(err, provider.ErrGarbled) {
		return a, err
	}
	if a.Usage != (runlog.Usage{}) { // the usage that was reported at the beginning of the answer
		a.Usage.Out = max(a.Usage.Out, said)
		return a, err
	}
	lost, _ := t.how.model.Cost(model.Tokens{Out: said})
	return a, errors.Join(err, t.bill.record(runlog.Event{Cost: input + lost}))
}

// possible reports whether a service's count is plausible. An absurd count would prevent every later turn, because of its cost or because
// the conversation would seem to fill its window.
func possible(u runlog.Usage) bool {
	for _, n := range []int{u.In, u.Out, u.CacheRead, u.CacheWrite} {
		if n < 0 || n > engine.MostTokens {
			return false
		}
	}
	return true
}

// expected returns how many tokens a question has at most: those that the service has counted, and an estimate of the rest.
func expected(conversation []transcript.Entry, q provider.Request) int {
	counted, rest, entries := 0, 0, 0
	for _, e := range slices.Backward(conversation) {
		entries += bytesOf(e.Message)
		if counted = cmp.Or(counted, e.Tokens); counted == 0 {
			rest += bytesOf(e.Message)
		}
	}
	fixed := len(q.System)
	for _, tool := range q.Tools {
		fixed += len(tool.Name) + len(tool.Description) + len(tool.Schema)
	}
	if counted == 0 {
		rest += fixed
	}
	asked := 0
	for _, m := range q.Messages {
		asked += bytesOf(m)
	}
	most := counted + (rest+max(0, asked-entries))/engine.Uncounted
	if counted > 0 && asked < entries/2 { // the question has a shortened conversation
		most = min(most, (asked+fixed)/engine.Uncounted)
	}
	return most
}
