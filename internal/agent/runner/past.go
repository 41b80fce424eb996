package runner

import (
	"iter"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/state/runlog"
)

const (
	pastRuns    = 20  // runs of a conversation that its pace is computed from
	growthRuns  = 5   // runs of a session that its growth is computed from
	pastRecords = 500 // records that are searched for branches: about three days of a busy directory
)

// past returns the latest runs, newest first, that continued the same conversation as record and reached an engine: of main, of the fork,
// of a routine's session, or all branches of main. Records that cannot be read are omitted; a session also lacks the runs before them.
func (r *Runner) past(record runlog.Record, most int) (list []runlog.Record) {
	earlier := r.branches
	if record.Key != "" {
		earlier = r.chain
	}
	looked := 0
	for old := range earlier(record) {
		if looked++; looked > pastRecords {
			break
		}
		same := old.Mode == record.Mode && old.Key == record.Key && old.Engine == record.Engine
		if same && old.ID != record.ID && old.Done() && old.Usage != (runlog.Usage{}) {
			list = append(list, old)
		}
		if len(list) == most {
			break
		}
	}
	return list
}

// branches yields all runs, newest first: the record of a branch of main does not name the branch before it.
func (r *Runner) branches(runlog.Record) iter.Seq[runlog.Record] {
	return func(yield func(runlog.Record) bool) {
		for old, err := range r.Runs.List() {
			if err == nil && !yield(old) {
				return
			}
		}
	}
}

// chain yields the earlier runs of a run's conversation, newest first. It reads no other records.
func (r *Runner) chain(record runlog.Record) iter.Seq[runlog.Record] {
	return func(yield func(runlog.Record) bool) {
		for id := record.Previous; id != ""; {
			old, err := r.Runs.Load(id)
			if err != nil || !yield(old) {
				return
			}
			id = old.Previous
		}
	}
}

// previous returns the id of the run before run id in a conversation, as the conversation's lock file notes it.
func (r *Runner) previous(key, id string) string {
	if key == "" {
		return ""
	}
	noted := strings.TrimSpace(lock.ReadNote(r.Home.ConversationLock(key)))
	if noted != id {
		return noted
	}
	own, _ := r.Runs.Load(id) // the run continues with an answer, and the file notes the run itself
	return own.Previous
}

// pace returns how the run's conversation goes on, by the gaps between its past turns and the one to this run, or by the job's schedule if
// it had none. A branch of main continues what the branch before has left in the service's cache. Runs of another model do not count.
func (r *Runner) pace(s Spec, record runlog.Record) (p engine.Pace) {
	next, requests := record.Started, 0
	if record.Key != "" || record.Shared {
		for _, old := range r.past(record, pastRuns) {
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

// contextOf returns how long a session is, by the past runs of its conversation; zero if the latest of them left another session.
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
