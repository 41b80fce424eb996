package slot

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
)

// Schedule is the schedule that a routine's file has from an instant on.
type Schedule struct {
	At      time.Time `json:"at"`
	Job     string    `json:"job"`
	Name    string    `json:"name"`
	Cron    string    `json:"cron,omitempty"` // "" if the routine no longer exists
	Zone    string    `json:"timezone,omitempty"`
	Enabled bool      `json:"enabled"`
	Host    string    `json:"host,omitempty"` // name of the only machine that runs the routine; "": every machine

	zone *time.Location // loaded from Zone, if possible
}

// In returns the zone in which the schedule is read; configured is the default zone.
func (s Schedule) In(configured *time.Location) *time.Location {
	if s.zone != nil {
		return s.zone
	}
	if own, err := time.LoadLocation(s.Zone); s.Zone != "" && err == nil {
		return own
	}
	return configured
}

// holds reports whether the noted schedule equals the one now in the file. A schedule that was noted in the future is from before the
// clock was set back.
func (s Schedule) holds(now Schedule, at time.Time) bool {
	return s.Name == now.Name && s.Cron == now.Cron && s.Zone == now.Zone && s.Enabled == now.Enabled && s.Host == now.Host && !s.At.After(at)
}

// Extend returns a job's history with the schedule that its file has now, noted in the minute of at, if it differs from the last one.
func Extend(history []Schedule, now Schedule, at time.Time) []Schedule {
	if n := len(history); n > 0 && history[n-1].holds(now, at) {
		return history
	}
	now.At = at.Truncate(time.Minute) // treated as written before this minute began
	return append(slices.Clip(before(history, now.At)), now)
}

// Here returns a job's history as it applies to a machine: while the job was bound to another one, it was disabled.
func Here(history []Schedule, machine string) []Schedule {
	elsewhere := func(s Schedule) bool { return process.Elsewhere(s.Host, machine) }
	if !slices.ContainsFunc(history, elsewhere) {
		return history
	}
	history = slices.Clone(history)
	for i, s := range history {
		history[i].Enabled = s.Enabled && !elsewhere(s)
	}
	return history
}

// Bound returns the parts of a job's history in which it was bound to a machine, as Here returns them; nil if there are none.
func Bound(history []Schedule, machine string) []Schedule {
	bound := func(s Schedule) bool { return s.Host != "" && !process.Elsewhere(s.Host, machine) }
	if !slices.ContainsFunc(history, bound) {
		return nil
	}
	history = slices.Clone(history)
	for i, s := range history {
		history[i].Enabled = s.Enabled && bound(s)
	}
	return history
}

// History returns every noted schedule, by job, oldest first.
func (b Book) History() (map[string][]Schedule, error) { return b.history(nil) }

// history is History. If only is not nil, it returns the schedules of these jobs and those that tooEarly needs.
func (b Book) history(only []Schedule) (map[string][]Schedule, error) {
	history := map[string][]Schedule{}
	zones := map[string]*time.Location{b.Zone.String(): b.Zone} // loading one reads a file
	early := true                                               // all schedules so far were noted in the future
	fits := func(line []byte) bool {                            // a backslash may be part of another way to write a character of an id
		return only == nil || early || bytes.IndexByte(line, '\\') >= 0 ||
			slices.ContainsFunc(only, func(s Schedule) bool { return bytes.Contains(line, []byte(s.Job)) })
	}
	for s, err := range store.Selected[Schedule](b.Home.Schedules(), nil, fits) {
		if err != nil {
			return history, err
		}
		if s.Job == "" || s.Job[0] == '.' || strings.Contains(s.Job, "/") {
			continue // an id is also a file name
		}
		early = early && b.Disk.Now().Before(s.At)
		if _, known := zones[s.Zone]; !known && s.Zone != "" {
			zones[s.Zone], _ = time.LoadLocation(s.Zone) // nil if this machine does not know the zone
		}
		s.zone = zones[s.Zone]
		history[s.Job] = append(before(history[s.Job], s.At), s)
	}
	return history, nil
}

// before returns a history without the schedules that were noted while the clock was ahead.
func before(history []Schedule, at time.Time) []Schedule {
	n := len(history)
	for n > 0 && history[n-1].At.After(at) {
		n--
	}
	return history[:n]
}

// Note records schedules that differ from the last noted ones, and returns the history with them. If gone is not nil, now lists all
// routines, and gone reports whether a routine that it lacks, given by its last file name, was removed; else the history of other routines
// is not complete. If the clock is earlier than the latest note, it is not set yet, and nothing is noted.
func (b Book) Note(ctx context.Context, now []Schedule, gone func(name string) bool) (map[string][]Schedule, error) {
	only := now
	if gone != nil {
		only = nil
	}
	history, err := b.history(only)
	if err != nil || b.tooEarly(history) || len(b.differing(history, now, gone)) == 0 {
		return history, err
	}
	held, err := b.Disk.Lock(ctx, b.Home.Lock("schedules"))
	if err != nil {
		return history, err
	}
	defer held.Release()
	if history, err = b.history(only); err != nil { // another process may have noted it first
		return history, err
	}
	for _, s := range b.differing(history, now, gone) {
		list := Extend(history[s.Job], s, b.Disk.Now().In(b.Zone))
		if err := store.AppendJSON(b.Home.Schedules(), store.Buffered, list[len(list)-1]); err != nil {
			return history, err
		}
		history[s.Job] = list
	}
	return history, nil
}

func (b Book) tooEarly(history map[string][]Schedule) bool {
	for _, list := range history {
		if !b.Disk.Now().Before(list[0].At) {
			return false
		}
	}
	return len(history) > 0
}

func (b Book) differing(history map[string][]Schedule, now []Schedule, gone func(string) bool) (fresh []Schedule) {
	at := b.Disk.Now()
	present := map[string]bool{}
	for _, s := range now {
		present[s.Job] = true
		if list := history[s.Job]; len(list) == 0 || !list[len(list)-1].holds(s, at) {
			fresh = append(fresh, s)
		}
	}
	for id, list := range history {
		if last := list[len(list)-1]; gone != nil && !present[id] && last.Cron != "" && gone(last.Name) {
			fresh = append(fresh, Schedule{Job: id, Name: last.Name})
		}
	}
	return fresh
}
