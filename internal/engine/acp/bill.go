package acp

import (
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// bill is what a process of the agent spends. Amounts are in USD.
type bill struct {
	model model.Model
	spent float64 // by earlier turns of the run
	most  float64 // of the run; 0: no limit

	past     float64 // what the agent reports for the session from before this process
	total    float64 // what it has reported last
	reported bool    // it reports costs
	booked   float64 // of this process, in the record
	context  int     // tokens in the conversation
	window   int     // tokens
	usage    runlog.Usage
}

func (b *bill) update(u update) {
	b.context, b.window = u.Used, max(u.Size, 0)
	if u.Cost == nil || u.Cost.Currency != "" && u.Cost.Currency != "USD" || u.Cost.Amount < 0 {
		return
	}
	if !b.reported && u.Cost.Amount < b.past { // a branch, or another way of counting
		b.past = 0
	}
	b.reported, b.total = true, u.Cost.Amount
}

// sum returns what the process has cost so far, as the agent reports it.
func (b *bill) sum() float64 {
	if !b.reported {
		return b.booked
	}
	return max(b.booked, b.total-b.past)
}

func (b *bill) exceeded() bool { return b.most > 0 && b.spent+b.sum() > b.most }

// request returns the event of a prompt. reserved is what the run has reserved.
func (b *bill) request(reserved float64) runlog.Event {
	most := reserved
	if b.most > 0 {
		most = min(reserved, max(b.most-b.spent-b.booked, 0))
	}
	return runlog.Event{Type: runlog.Request, Most: most}
}

// close returns the event of a prompt's end. The cost is the agent's; if it reports none, that of the tokens by the table of models.
func (b *bill) close(e ended) runlog.Event {
	u := runlog.Usage{}
	switch {
	case e.Usage != nil:
		u = runlog.Usage{In: e.Usage.In, Out: e.Usage.Out + e.Usage.Thought, CacheRead: e.Usage.CacheRead, CacheWrite: e.Usage.CacheWrite}
	case e.Meta.Quota.Count.In > 0:
		u = runlog.Usage{In: e.Meta.Quota.Count.In, Out: e.Meta.Quota.Count.Out}
	}
	if max(u.In, u.Out, u.CacheRead, u.CacheWrite) > engine.MostTokens || min(u.In, u.Out, u.CacheRead, u.CacheWrite) < 0 {
		u = runlog.Usage{} // absurd
	}
	event := runlog.Event{Type: runlog.UsageEvent, Usage: &u, Context: b.context, Window: b.window}
	table, priced := b.model.Cost(model.Tokens(u))
	switch cost := b.sum() - b.booked; {
	case b.reported && (cost > 0 || !priced):
		event.Cost = cost
	case priced:
		event.Cost = table
	default:
		event.Unpriced = u != runlog.Usage{}
	}
	b.booked += event.Cost
	b.usage = b.usage.Add(u)
	return event
}
