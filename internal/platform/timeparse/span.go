package timeparse

import (
	"fmt"
	"strings"
	"time"
)

// Span is a part of each day by the clock, such as 22:00-07:00. It may pass midnight. The zero Span contains nothing.
type Span struct {
	From, To int // minutes since midnight
}

// ReadSpan parses HH:MM-HH:MM. none and off give the zero Span.
func ReadSpan(text string) (Span, error) {
	if text == "none" || text == "off" {
		return Span{}, nil
	}
	from, to, found := strings.Cut(text, "-")
	first, okFirst := clock24(strings.TrimSpace(from))
	last, okLast := clock24(strings.TrimSpace(to))
	s := Span{first / 60, last / 60}
	if !found || !okFirst || !okLast || s.From == s.To {
		return Span{}, fmt.Errorf("%q is not a part of the day: write one like 22:00-07:00, or none", text)
	}
	return s, nil
}

// Contains reports whether an instant is in the span, by the clock of its location.
func (s Span) Contains(at time.Time) bool {
	m := at.Hour()*60 + at.Minute()
	if s.From <= s.To {
		return s.From <= m && m < s.To
	}
	return m >= s.From || m < s.To
}

// End returns the first instant at or after at that is not in the span. It tests each minute, because a change of clocks can skip or
// repeat the end.
func (s Span) End(at time.Time) time.Time {
	end := at
	for s.Contains(end) {
		end = end.Truncate(time.Minute).Add(time.Minute)
	}
	return end
}

func (s Span) String() string {
	if s == (Span{}) {
		return "none"
	}
	return fmt.Sprintf("%02d:%02d-%02d:%02d", s.From/60, s.From%60, s.To/60, s.To%60)
}
