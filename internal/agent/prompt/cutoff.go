package prompt

import (
	"fmt"
	"strings"
	"time"
)

// CutOff is a message of the owner whose turn ended before its answer was complete.
type CutOff struct {
	At   time.Time // of the message, in the zone to be shown
	Text string
	Why  string
}

// headerCutOff opens the note about a CutOff.
const headerCutOff = "[system] A turn was cut off"

// WithCutOff returns the owner's message with a note about each earlier one that was cut off.
func WithCutOff(list []CutOff, message string) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, fmt.Sprintf("%s (%s); the owner has not seen a complete answer. The owner's message of %s was:\n  %s",
			headerCutOff, strings.Join(strings.Fields(c.Why), " "), c.At.Format("2006-01-02 Mon 03:04 PM MST"), indent(strings.TrimSpace(c.Text))))
	}
	return strings.Join(append(parts, message), "\n\n")
}
