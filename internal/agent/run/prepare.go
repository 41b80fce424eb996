package run

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/state/runlog"
)

const (
	pastRuns    = 20  // past runs of a conversation from which its pace is computed
	growthRuns  = 5   // past runs of a session from which its growth is computed
	pastRecords = 500 // records that are searched for branches: about three days of a busy directory
)

// past gives access to the earlier runs of conversations.
type past struct {
	home paths.Dir
	runs runlog.Book
}

// of returns the latest runs, newest first, that continued the conversation of record and reached an engine: runs of main, of the fork,
// of a routine's session, or of all branches of main. It omits records that cannot be read, and for a session also the runs before them.
func (p past) of(record runlog.Record, most int) (list []runlog.Record) {
	earlier := p.branches
	if record.Key != "" {
		earlier = p.chain
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

// branches yields the runs that began before a run, newest first: the record of a branch of main does not name the branch before it.
func (p past) branches(record runlog.Record) iter.Seq[runlog.Record] {
	return func(yield func(runlog.Record) bool) {
		for old, err := range p.runs.List() {
			if err == nil && old.ID < record.ID && !yield(old) {
				return
			}
		}
	}
}

// chain yields the earlier runs of a run's conversation, newest first. It reads no other records.
func (p past) chain(record runlog.Record) iter.Seq[runlog.Record] {
	return func(yield func(runlog.Record) bool) {
		for id := record.Previous; id != ""; {
			old, err := p.runs.Load(id)
			if err != nil || !yield(old) {
				return
			}
			id = old.Previous
		}
	}
}

// previous returns the id of the run before run id in a conversation, as the conversation's lock file notes it.
func (p past) previous(key, id string) string {
	if key == "" {
		return ""
	}
	noted := strings.TrimSpace(lock.ReadNote(p.home.ConversationLock(key)))
	if noted != id {
		return noted
	}
	own, _ := p.runs.Load(id) // the run continues with an answer, and the file notes the run itself
	return own.Previous
}

// pace returns the pace of the run's conversation: from the gaps between its past turns and this one, or from the job's schedule if there
// are none. A branch of main uses what the branch before it has left in the service's cache. Runs of another model do not count.
func (p past) pace(s Spec, record runlog.Record) (pace engine.Pace) {
	next, requests := record.Started, 0
	if record.Key != "" || record.Shared {
		for _, old := range p.of(record, pastRuns) {
			if old.Model != record.Model {
				continue
			}
			pace.Gaps = append(pace.Gaps, max(0, next.Sub(*old.Finished)))
			next, requests = old.Started, requests+old.Requests
		}
	}
	if n := len(pace.Gaps); n > 0 {
		pace.Requests = float64(requests) / float64(n)
	} else if s.Limits.Again > 0 {
		pace.Gaps = []time.Duration{s.Limits.Again}
	}
	return pace
}

// prepare returns the input of the turn, after the origin of the run has prepared it.
func (w *work) prepare(ctx context.Context) (prompt.Input, error) {
	in, err := w.r.input(w.spec, w.run.Record)
	if err != nil {
		return in, err
	}
	if in, err = w.spec.Origin.Prepare(ctx, w.tools, in); err == nil {
		w.run.Told = in.Tells()
	}
	return in, err
}

// lateAfter is the delay after which the agent of a run, or the text of a plain reminder, says that it is late.
const lateAfter = 2 * time.Minute

// late reports whether a run is late. at is the scheduled time; nil if there is none.
func late(at *time.Time, now time.Time) bool {
	return at != nil && now.Sub(*at) > lateAfter
}

// input completes the input of a Spec with the time and the facts of the record.
func (r *Runner) input(s Spec, record runlog.Record) (in prompt.Input, err error) {
	in = s.Input
	in.Now, in.Busy = r.Disk.Now().In(r.Zone), record.Busy && in.Task.Background
	in.Task.Dirs = record.Dirs // with ~/ expanded
	in.Tools = ownPatterns(record)
	if in.Told = record.ToldBefore; record.Persistent {
		in.Context = contextOf(r.past().of(record, growthRuns), record.SessionBefore)
	}
	if late(record.Scheduled, in.Now) {
		in.Late = record.Scheduled.In(r.Zone)
	}
	switch record.Compaction {
	case runlog.CompactionDone:
		in.Session = prompt.Compacted
	case runlog.CompactionFailed:
		in.Session = prompt.CompactionFailed
	}
	if in.Task.Background && in.Task.AllowPing {
		in.Budget, err = r.Budget.Status()
	}
	for _, a := range in.Piped.Files {
		text, size, textErr := a.Text()
		err = errors.Join(err, textErr)
		in.Piped.Named = append(in.Piped.Named, prompt.File{Name: a.Name, Type: a.Type, Size: size, Text: text})
	}
	return in, err
}

// ownPatterns returns the patterns in force except those of ollim's own tools.
func ownPatterns(record runlog.Record) []string {
	return slices.DeleteFunc(slices.Clone(record.Tools), func(p string) bool { return strings.HasPrefix(p, tools.Prefix) })
}

// system returns the system prompt: that of the Rights, or else the parts of the task that are the same at every fire.
func system(s Spec, run *runlog.Run) string {
	if s.Policy.System != "" {
		return s.Policy.System
	}
	task := s.Input.Task
	task.Dirs = run.Dirs
	return prompt.Alone(task, ownPatterns(run.Record))
}

// contextOf returns the length of a session from the past runs of its conversation; zero if the latest of them left another session.
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
