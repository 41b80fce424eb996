package run

import (
	"time"

	"github.com/ollim/ollim/internal/store"
)

// Judged is the ids of the tool uses of a run that a verdict was given on.
func (b Book) Judged(id string) (map[string]bool, error) {
	judged := map[string]bool{}
	for e, err := range store.Lines[Event](b.Home.Run(id, "events.jsonl"), nil) {
		if err != nil {
			return nil, err
		}
		if e.Type == Verdict {
			judged[e.ToolID] = true
		}
	}
	return judged, nil
}

// Bill is what the engine of a run has told of its cost.
type Bill struct {
	Cost   float64 // USD
	Starts int     // of the engine
	Silent int     // how many of them told nothing of their cost: an engine that is killed does not
}

// Known says whether the cost is all that there was.
func (b Bill) Known() bool { return b.Silent == 0 }

// Bill adds up a run's cost so far.
func (b Book) Bill(id string) (bill Bill, err error) {
	silent := 0 // 1 while the last start has told nothing
	for e, err := range store.Lines[Event](b.Home.Run(id, "events.jsonl"), nil) {
		if err != nil {
			return bill, err
		}
		bill.Cost += e.Cost
		switch e.Type {
		case Session:
			bill.Starts, bill.Silent, silent = bill.Starts+1, bill.Silent+silent, 1
		case UsageEvent:
			silent = 0
		}
	}
	bill.Silent += silent
	return bill, nil
}

// Since is the records of runs that began at or after an instant, newest first. Records that cannot be read are left out.
func (b Book) Since(at time.Time) (list []Record, err error) {
	for r, err := range b.List() {
		if err != nil && r.ID == "" {
			return nil, err
		}
		if err != nil {
			continue
		}
		if r.Started.Before(at) {
			break
		}
		list = append(list, r)
	}
	return list, nil
}
