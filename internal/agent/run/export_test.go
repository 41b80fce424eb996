package run

import "github.com/ollim/ollim/internal/state/runlog"

// PastRecords is pastRecords.
const PastRecords = pastRecords

// Past returns the earlier runs of a run's conversation.
func (r *Runner) Past(record runlog.Record, most int) []runlog.Record {
	return r.past().of(record, most)
}
