package runlog

import (
	"iter"
	"slices"
	"time"

	"github.com/ollim/ollim/internal/platform/store"
)

// Judged returns the ids of the tool uses that have a verdict.
func (r *Run) Judged() (map[string]bool, error) {
	judged := map[string]bool{}
	for e, err := range store.Lines[Event](r.book.Home.Run(r.ID, "events.jsonl"), nil) {
		if err != nil {
			return nil, err
		}
		if e.Type == Verdict {
			judged[e.ToolID] = true
		}
	}
	return judged, nil
}

// Allowed reports whether a use of the tool was allowed in the run.
func (r *Run) Allowed(tool string) (bool, error) {
	for e, err := range store.Lines[Event](r.book.Home.Run(r.ID, "events.jsonl"), nil) {
		if err != nil {
			return false, err
		}
		if e.Type == Verdict && e.Tool == tool && !e.IsError {
			return true, nil
		}
	}
	return false, nil
}

// FailedServers returns the latest failure of each MCP server, in the order of the first ones.
func (r *Run) FailedServers() (failed []Event, err error) {
	for e, err := range store.Lines[Event](r.book.Home.Run(r.ID, "events.jsonl"), nil) {
		if err != nil {
			return nil, err
		}
		if e.Type != ServerFailed {
			continue
		}
		if i := slices.IndexFunc(failed, func(f Event) bool { return f.Tool == e.Tool }); i >= 0 {
			failed[i] = e
		} else {
			failed = append(failed, e)
		}
	}
	return failed, nil
}

// Answer returns what the owner answered about the use of a tool; answered is false before that.
func (r *Run) Answer(toolID string) (allowed, answered bool, err error) {
	for e, err := range store.Lines[Event](r.book.Home.Run(r.ID, "events.jsonl"), nil) {
		if err != nil {
			return false, false, err
		}
		if e.Type == Permitted && e.ToolID == toolID {
			return !e.IsError, true, nil
		}
	}
	return false, false, nil
}

// Unanswered returns the uses of tools that the owner was asked about and has not answered yet.
func (r *Run) Unanswered() (asked []Event, err error) {
	for e, err := range store.Lines[Event](r.book.Home.Run(r.ID, "events.jsonl"), nil) {
		switch {
		case err != nil:
			return nil, err
		case e.Type == Asked:
			asked = append(asked, e)
		case e.Type == Permitted:
			asked = slices.DeleteFunc(asked, func(a Event) bool { return a.ToolID == e.ToolID })
		}
	}
	return asked, nil
}

// bill is the cost of a run, derived from its events.
type bill struct {
	Cost    float64 // USD; Assumed is a part of it
	Assumed float64 // for requests without a reported cost and one that is open: their highest possible cost
	Starts  int     // of the engine, since the run last went on

	silent   bool    // nothing was reported since the last start or request
	reported float64 // of answers whose usage follows
	open     float64 // of the request, at most
}

// Bill adds up a run's cost so far. An engine that was started and reported nothing counts as the whole reservation.
func (b Book) Bill(r Record) (bill bill, err error) {
	for e, err := range store.Lines[Event](b.Home.Run(r.ID, "events.jsonl"), nil) {
		if err != nil {
			return bill, err
		}
		bill.add(e, r)
	}
	bill.close()
	return bill, nil
}

func (b *bill) add(e Event, r Record) {
	b.Cost += e.Cost
	switch e.Type {
	case Session:
		b.close()
		b.Starts, b.silent, b.reported, b.open = b.Starts+1, true, 0, 0
		if r.Accounted {
			b.open = max(0, r.Settled+r.Reserved-b.Cost)
		}
	case Answered: // as it was settled then
		b.Assumed += max(0, e.Reported-b.Cost)
		b.Cost, b.Starts, b.silent = max(b.Cost, e.Reported), 0, false
	case Request:
		b.silent, b.reported, b.open = true, e.Reported, e.Most
	case UsageEvent:
		b.silent = false
		if e.Usage == nil {
			b.Assumed += e.Cost
		}
	}
}

// close counts the open request.
func (b *bill) close() {
	if b.silent {
		b.Cost, b.Assumed, b.silent = b.Cost+b.reported+b.open, b.Assumed+b.open, false
	}
}

// CutOff returns the record of a run whose process died unreported, as Close will write it, and any other record
// unchanged.
func (b Book) CutOff(r Record) Record {
	if r.Done() || b.Alive(r) {
		return r
	}
	dead := Run{Record: r, book: b}
	_ = dead.Conclude(b.cutOff(r)) // sets what is known of it
	return dead.Record
}

// Since yields the records of runs that began at or after an instant, newest first. Unreadable records are omitted. An
// error of the directory is yielded last.
func (b Book) Since(at time.Time) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for r, err := range b.List() {
			if err != nil && r.ID != "" {
				continue
			}
			if err == nil && r.Started.Before(at) || !yield(r, err) || err != nil {
				return
			}
		}
	}
}
