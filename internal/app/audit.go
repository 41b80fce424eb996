package app

import (
	"errors"
	"io/fs"
	"time"

	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// Audit returns what became of every slot since an instant, except for those of the last minutes, which are not settled.
func (h Home) Audit(from time.Time) ([]forecast.Answer, error) {
	return forecast.Audit(h.Slots(), from, h.Disk.Now().Add(-forecast.Settled), h.became)
}

// became is the outcome of a claim that does not say it; "" is of a run that is in progress.
func (h Home) became(c slot.Claim) string {
	r, err := h.Runs().Load(c.Run)
	switch {
	case err == nil && r.Done():
		return string(r.Outcome)
	case c.Alive(), err == nil && h.Runs().Alive(r):
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return forecast.Unaccounted // its process died before it had a record
	}
	return string(runlog.Interrupted)
}
