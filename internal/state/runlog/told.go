package runlog

import "time"

// Told is what the prompts of a session have already said about things that change between fires. It is said again only when it changes.
type Told struct {
	Session string `json:"session,omitempty"` // id of the session at the end of the latest of these fires
	// length of the session, rounded to the steps in which it is reported; 0 if it was not reported
	Context int    `json:"context,omitempty"`
	Pings   string `json:"pings,omitempty"` // tokens in the ping budget, as they were reported
	Day     string `json:"day,omitempty"`   // the day on which Tasks were reported
	// the forward schedule: the latest time of each row, by the row's text without the time
	Tasks map[string]time.Time `json:"tasks,omitempty"`
}

// ToldUntil returns what the run's session has been told when the run has ended. A session that was compacted is told everything again,
// so it returns less.
func (r Record) ToldUntil() Told {
	switch {
	case r.Turns == 0: // the session may not contain the prompt
		return r.ToldBefore
	case r.Compactions > 0:
		return Told{}
	}
	told := r.Told
	told.Session = r.SessionAfter
	return told
}
