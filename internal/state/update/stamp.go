package update

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ollim/ollim/internal/platform/timeparse"
)

// stampLayout is Python's isoformat with six digits and a numeric offset, the only form that older readers accept.
const stampLayout = "2006-01-02T15:04:05.000000-07:00"

// stamp is an instant on disk.
type stamp struct {
	time.Time
	floating bool // written without an offset: the time is in the configured zone, and Time holds its digits as UTC
}

func stampOf(t time.Time) stamp { return stamp{Time: t} }

// MarshalJSON writes ISO 8601 with microseconds and offset.
func (s stamp) MarshalJSON() ([]byte, error) { return json.Marshal(s.Format(stampLayout)) }

// UnmarshalJSON reads ISO 8601 with an optional fraction and offset.
func (s *stamp) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	at, floating, ok := timeparse.ISO(text)
	if !ok {
		return fmt.Errorf("ts %q is not ISO 8601", text)
	}
	*s = stamp{at, floating}
	return nil
}

// in returns the instant in a zone, to the microsecond.
func (s stamp) in(zone *time.Location) time.Time {
	t := s.Time
	if s.floating {
		t = timeparse.Shown(t, zone)
	}
	return t.In(zone).Truncate(time.Microsecond)
}
