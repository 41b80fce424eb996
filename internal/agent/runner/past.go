package runner

import (
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

const (
	pastRuns    = 20  // of a conversation, that tell how it goes on
	pastRecords = 500 // that are looked at for them: about three days of a busy directory
)

// past returns the latest runs, newest first, that continued the same conversation as record and reached an engine: of main, of the fork,
// of a routine's session, or all branches of main. Records that cannot be read are left out.
func (r *Runner) past(record runlog.Record) (list []runlog.Record) {
	looked := 0
	for old, err := range r.Runs.List() {
		if looked++; looked > pastRecords || len(list) == pastRuns {
			break
		}
		same := old.Mode == record.Mode && old.Key == record.Key && old.Engine == record.Engine
		if err == nil && same && old.ID != record.ID && old.Done() && old.Usage != (runlog.Usage{}) {
			list = append(list, old)
		}
	}
	return list
}

// pace returns how the run's conversation goes on, by the gaps between its past turns and the one to this run, or by the job's schedule if it
// had none. A branch of main continues what the branch before has left in the service's cache. What only another model read does not count.
func (r *Runner) pace(s Spec, record runlog.Record) (p engine.Pace) {
	next, requests := record.Started, 0
	if record.Key != "" || record.Shared {
		for _, old := range r.past(record) {
			if old.Model != record.Model {
				continue
			}
			p.Gaps = append(p.Gaps, max(0, next.Sub(*old.Finished)))
			next, requests = old.Started, requests+old.Requests
		}
	}
	if n := len(p.Gaps); n > 0 {
		p.Requests = float64(requests) / float64(n)
	} else if s.Limits.Again > 0 {
		p.Gaps = []time.Duration{s.Limits.Again}
	}
	return p
}

// contextOf returns how long a session is, by the past runs of its conversation; nothing if the latest of them left another session.
func contextOf(past []runlog.Record, session string) (c prompt.Context) {
	if len(past) == 0 || session == "" || past[0].SessionAfter != session {
		return c
	}
	c.Tokens, c.Full = past[0].Context, past[0].Full()
	grown, fires := 0, 0
	for _, r := range past {
		if r.Compactions == 0 && r.ContextBefore > 0 && r.Context > r.ContextBefore {
			grown, fires = grown+r.Context-r.ContextBefore, fires+1
		}
	}
	if fires > 0 {
		c.Growth = grown / fires
	}
	return c
}
