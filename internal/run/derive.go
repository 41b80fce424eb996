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

// Cost is what a run has cost so far, in USD; negative when its events cannot be read.
func (b Book) Cost(id string) (usd float64) {
	for e, err := range store.Lines[Event](b.Home.Run(id, "events.jsonl"), nil) {
		if err != nil {
			return -1
		}
		usd += e.Cost
	}
	return usd
}

// Since is the records of runs that began at or after an instant, newest first. Records that cannot be read are left out.
func (b Book) Since(at time.Time) (list []Record) {
	for r, err := range b.List() {
		if err != nil {
			continue
		}
		if r.Started.Before(at) {
			break
		}
		list = append(list, r)
	}
	return list
}
