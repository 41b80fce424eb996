package slot

import (
	"context"
	"time"

	"github.com/ollim/ollim/internal/store"
)

// Schedule is what a routine's file said of its time from an instant on.
type Schedule struct {
	At      time.Time `json:"at"`
	Job     string    `json:"job"`
	Name    string    `json:"name"`
	Cron    string    `json:"cron,omitempty"` // "" when the routine is gone
	Zone    string    `json:"timezone,omitempty"`
	Enabled bool      `json:"enabled"`
}

func (s Schedule) same(o Schedule) bool {
	return s.Cron == o.Cron && s.Zone == o.Zone && s.Enabled == o.Enabled
}

// History is every schedule that was noted, by job, oldest first.
func (b Book) History() (map[string][]Schedule, error) {
	history := map[string][]Schedule{}
	for s, err := range store.Lines[Schedule](b.Home.Schedules(), nil) {
		if err != nil {
			return history, err
		}
		history[s.Job] = append(history[s.Job], s)
	}
	return history, nil
}

// Note keeps what differs from the last that was noted. With all, now is every routine there is, and those that are not among
// them are gone.
func (b Book) Note(ctx context.Context, now []Schedule, all bool) error {
	fresh, err := b.differing(now, all)
	if err != nil || len(fresh) == 0 {
		return err
	}
	held, err := b.Disk.Lock(ctx, b.Home.Lock("schedules"))
	if err != nil {
		return err
	}
	defer held.Release()
	if fresh, err = b.differing(now, all); err != nil { // somebody else may have been first
		return err
	}
	for _, s := range fresh {
		s.At = b.Disk.Now().In(b.Zone)
		if err := store.AppendJSON(b.Home.Schedules(), s, store.Buffered); err != nil {
			return err
		}
	}
	return nil
}

func (b Book) differing(now []Schedule, all bool) (fresh []Schedule, err error) {
	last := map[string]Schedule{}
	for s, err := range store.Lines[Schedule](b.Home.Schedules(), nil) {
		if err != nil {
			return nil, err
		}
		last[s.Job] = s
	}
	present := map[string]bool{}
	for _, s := range now {
		present[s.Job] = true
		if old, known := last[s.Job]; !known || !old.same(s) {
			fresh = append(fresh, s)
		}
	}
	for id, old := range last {
		if all && !present[id] && old.Cron != "" {
			fresh = append(fresh, Schedule{Job: id, Name: old.Name})
		}
	}
	return fresh, nil
}
