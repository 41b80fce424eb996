package acp

import (
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/command"
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
	asked    float64 // the most that the open prompt may cost
	open     bool    // a prompt has not ended
	context  int     // tokens in the conversation
	window   int     // tokens
	usage    runlog.Usage
	gate     *command.Gate // what counts the requests of the process; nil: nothing does
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

// sum returns what the process has cost so far, as the gateway has counted it. Without a gateway, or a price, it is what the agent reports.
func (b *bill) sum() (usd float64) {
	if b.gate != nil {
		usd, _ = b.gate.Spent()
	}
	if usd == 0 && b.reported {
		usd = b.total - b.past
	}
	return max(b.booked, usd)
}

// exceeded reports whether the limit is reached, which a gateway enforces itself.
func (b *bill) exceeded() bool { return b.gate == nil && b.most > 0 && b.spent+b.sum() > b.most }

// ended returns why the gateway has ended the agent's work; nil if it has not.
func (b *bill) ended() error {
	if b.gate == nil {
		return nil
	}
	return b.gate.Ended()
}

// request returns the event of a prompt. reserved is what the run has reserved.
func (b *bill) request(reserved float64) runlog.Event {
	most := reserved
	if b.most > 0 {
		most = min(reserved, max(b.most-b.spent-b.booked, 0))
	}
	b.open, b.asked = true, most
	return runlog.Event{Type: runlog.Request, Most: most}
}

// settle records what an open prompt has cost as far as the gateway knows it, after the end of the process.
func (t *turn) settle() error {
	return t.locked(func() error {
		b := &t.cost
		if b.gate == nil || !b.open {
			return nil
		}
		if usd, unreported := b.gate.Spent(); unreported > 0 {
			reported := usd - b.booked
			return t.sink(runlog.Event{Type: runlog.Request, Reported: reported, Most: max(0, b.asked-reported)})
		}
		return t.sink(b.close(ended{}))
	})
}

// count returns the usage of a prompt, by the gateway or by the agent.
func (b *bill) count(e ended) (u runlog.Usage) {
	switch {
	case b.gate != nil:
		all := b.gate.Used()
		return runlog.Usage{
			In: all.In - b.usage.In, Out: all.Out - b.usage.Out, CacheRead: all.CacheRead - b.usage.CacheRead, CacheWrite: all.CacheWrite - b.usage.CacheWrite,
		}
	case e.Usage != nil:
		u = runlog.Usage{In: e.Usage.In, Out: e.Usage.Out + e.Usage.Thought, CacheRead: e.Usage.CacheRead, CacheWrite: e.Usage.CacheWrite}
	case e.Meta.Quota.Count.In > 0:
		u = runlog.Usage{In: e.Meta.Quota.Count.In, Out: e.Meta.Quota.Count.Out}
	}
	if max(u.In, u.Out, u.CacheRead, u.CacheWrite) > engine.MostTokens || min(u.In, u.Out, u.CacheRead, u.CacheWrite) < 0 {
		u = runlog.Usage{} // absurd
	}
	return u
}

// close returns the event of a prompt's end. If neither the gateway nor the agent knows the cost, it is that of the tokens by the table of
// models.
func (b *bill) close(e ended) runlog.Event {
	u := b.count(e)
	b.open = false
	event := runlog.Event{Type: runlog.UsageEvent, Usage: &u, Context: b.context, Window: b.window}
	table, priced := b.model.Cost(model.Tokens(u))
	switch cost := b.sum() - b.booked; {
	case cost > 0 || b.reported && !priced:
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
