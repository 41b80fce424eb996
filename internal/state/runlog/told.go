package runlog

import "time"

// Told is what the prompts of a session have said of what changes between fires, so that it is not said again before it changes.
type Told struct {
	Session string               `json:"session,omitempty"` // the id, as it was at the end of the latest of these fires
	Context int                  `json:"context,omitempty"` // the length of the session, in the steps in which it is said; 0: it was not said
	Pings   string               `json:"pings,omitempty"`   // the tokens in the ping budget
	Day     string               `json:"day,omitempty"`     // on which Tasks were said
	Tasks   map[string]time.Time `json:"tasks,omitempty"`   // of the forward schedule: the latest time, by the row without it
}

// ToldUntil returns what the run's session has been told when the run has ended. A session that was compacted is told everything again.
func (r Record) ToldUntil() Told {
	switch {
	case r.Turns == 0: // the prompt may not be part of the session
		return r.ToldBefore
	case r.Compactions > 0:
		return Told{}
	}
	told := r.Told
	told.Session = r.SessionAfter
	return told
}
