package runlog

import (
	"iter"
	"os"
	"slices"
	"time"
)

// Judged returns the ids of the tool uses that have a verdict.
func (r *Run) Judged() (map[string]bool, error) {
	judged := map[string]bool{}
	err := r.each(func(e Event) {
		if e.Type == Verdict {
			judged[e.ToolID] = true
		}
	})
	return judged, err
}

// Allowed reports whether a use of the tool was allowed in the run.
func (r *Run) Allowed(tool string) (allowed bool, err error) {
	err = r.each(func(e Event) { allowed = allowed || e.Type == Verdict && e.Tool == tool && !e.IsError })
	return allowed, err
}

// FailedServers returns the latest failure of each MCP server, ordered by the first failure of each.
func (r *Run) FailedServers() (failed []Event, err error) {
	err = r.each(func(e Event) {
		i := slices.IndexFunc(failed, func(f Event) bool { return f.Tool == e.Tool })
		switch {
		case e.Type != ServerFailed:
		case i >= 0:
			failed[i] = e
		default:
			failed = append(failed, e)
		}
	})
	return failed, err
}

// Answered returns the names of the tools that succeeded, one name for each use.
func (r *Run) Answered() (tools []string, err error) {
	err = r.each(func(e Event) {
		if e.Type == ToolResult && !e.IsError {
			tools = append(tools, e.Tool)
		}
	})
	return tools, err
}

// Refused returns the names of ollim's own tools whose use was refused, one name for each use.
func (r *Run) Refused() (tools []string, err error) {
	err = r.each(func(e Event) {
		if e.Type == Refusal {
			tools = append(tools, e.Tool)
		}
	})
	return tools, err
}

// Refusals returns how many attempts in a row the service has refused up to now, and the reason of the last refusal.
func (r *Run) Refusals() (n int, why string, err error) {
	err = r.each(func(e Event) {
		switch e.Type {
		case Retry:
			n, why = n+1, e.Text
		case Text, Thinking, ToolUse, ToolResult, Result: // the service answers
			n, why = 0, ""
		}
	})
	return n, why, err
}

// Answer returns the owner's answer about the use of a tool; answered is false until there is one.
func (r *Run) Answer(toolID string) (allowed, answered bool, err error) {
	err = r.each(func(e Event) {
		if !answered && e.Type == Permitted && e.ToolID == toolID {
			allowed, answered = !e.IsError, true
		}
	})
	return allowed, answered, err
}

// Unanswered returns the uses of tools that the owner was asked about and has not answered yet.
func (r *Run) Unanswered() (asked []Event, err error) {
	err = r.each(func(e Event) {
		switch e.Type {
		case Asked:
			asked = append(asked, e)
		case Permitted:
			asked = slices.DeleteFunc(asked, func(a Event) bool { return a.ToolID == e.ToolID })
		}
	})
	return asked, err
}

// bill is the cost of a run, derived from its events.
type bill struct {
	Cost    float64 // USD; Assumed is a part of it
	Assumed float64 // part of Cost: the highest possible cost of requests whose cost was not reported, and of an open request
	Doubt   float64 // how much more than Cost the table of models computes, where the two disagree
	Starts  int     // how often the engine was started since the run last continued

	silent   bool    // nothing was reported since the last start or request
	reported float64 // cost of answers whose usage event is still to come
	open     float64 // the highest possible cost of the open request
}

// Bill adds up a run's cost so far. An engine that was started and has reported nothing counts as the whole reservation.
// A power failure may have taken events, but not the end of the record.
func (b Book) Bill(r Record) (bill, error) {
	bill, err := b.run(r).Bill()
	bill.Cost = max(bill.Cost, r.Cost)
	return bill, err
}

// Bill is Book.Bill for the run.
func (r *Run) Bill() (bill bill, err error) {
	if err = r.each(func(e Event) { bill.add(e, r.Record) }); err == nil {
		bill.end(r.Record)
	}
	return bill, err
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
	case Answered: // the cost that was settled when the answer came
		b.Assumed += max(0, e.Reported-b.Cost)
		b.Cost, b.Starts, b.silent = max(b.Cost, e.Reported), 0, false
	case Request:
		b.silent, b.reported, b.open = true, e.Reported, e.Most
	case UsageEvent:
		b.silent = false
		if e.ByTable > 0 {
			b.Doubt += e.ByTable - e.Cost
		}
		if e.Usage == nil {
			b.Assumed += e.Cost
		}
	}
}

// end closes the bill of a run. If the machine stopped during the run, the last events may be missing, and the cost is at least what was
// reserved.
func (b *bill) end(r Record) {
	b.close()
	if missing := r.Settled + r.Reserved - b.Cost; missing > 0 && r.Accounted && !r.Done() && r.Rebooted() {
		b.Cost, b.Assumed = b.Cost+missing, b.Assumed+missing
	}
}

func (b *bill) close() {
	if b.silent {
		b.Cost, b.Assumed, b.silent = b.Cost+b.reported+b.open, b.Assumed+b.open, false
	}
}

// CutOff returns the record of a run whose process died as Close would write it. Any other record is returned unchanged. A record without
// an end is read again once its process is known to have ended, because the process may have finished the record meanwhile.
func (b Book) CutOff(r Record) Record {
	if r.Done() || b.Alive(r) {
		return r
	}
	if now, err := b.Load(r.ID); err == nil && (now.Done() || now.Process.ID != r.Process.ID) {
		return now
	}
	dead := b.run(r)
	_ = dead.Conclude(b.cutOff(r)) // an error leaves the totals of the events that could be read
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

// Written yields the records of runs that began at or after an instant and whose record was written at or after another, newest first. It
// reads no other records. An error of the directory is yielded last.
func (b Book) Written(from, since time.Time) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		first := from.UTC().Format(idTime)
		for id, err := range b.newest() {
			if err != nil {
				yield(Record{}, err)
				return
			}
			if id < first {
				return
			}
			if info, err := os.Stat(b.Home.Run(id, "run.json")); err != nil || info.ModTime().Before(since) {
				continue
			}
			if r, err := b.Load(id); err == nil && !yield(r, nil) {
				return
			}
		}
	}
}
