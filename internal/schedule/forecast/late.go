package forecast

import "time"

// Late reports whether a fire that was to be at an instant is late enough for the run to be informed: by more than two minutes. A zero at,
// of a fire that was never scheduled, is not late.
func Late(at, now time.Time) bool {
	return !at.IsZero() && now.Sub(at) > 2*time.Minute
}
