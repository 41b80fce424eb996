package schedule

import "time"

// Tag says what an entry of the forward schedule is to the run that reads it.
type Tag string

// The tags of behaviour 3.3.
const (
	ThisTask  Tag = "this task"
	JustFired Tag = "just fired"
)

// Entry is one background task in the forward schedule of a prompt.
type Entry struct {
	At          time.Time // in the zone to be shown
	Label       string    // a routine's description or "Routine", "Chain reminder (2/4)", "Reminder"
	Description string    // at most 60 characters and "..."
	Path        string    // of the file, relative to the data directory
	Silent      bool      // it may not ping
	Tag         Tag       // "" for one that is neither
}

// Forward is what background tasks lie around an instant.
type Forward struct {
	Entries []Entry // by time
	Hours   int     // from now to the last entry to come, rounded, at least 1
	Refills int     // whole tokens that the ping budget gains before the last entry
}
