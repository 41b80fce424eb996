package tick

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/update"
)

// overdueReminder is a reminder whose time is long past.
type overdueReminder struct {
	at   time.Time // in the zone to be shown
	text string    // what it was to remind of
}

// overdueChars is how much of each overdue reminder is told, in characters.
const overdueChars = 200

// overdueText is one update for all reminders that were due more than 24 hours ago, in the order given. It fits into an update:
// those that found no place are counted.
func overdueText(list []overdueReminder) string {
	const space = update.MaxChars - 100 // for the last line
	text := "These reminders were due more than 24 hours ago and were not run (they are kept in state/late):"
	for i, r := range list {
		line := fmt.Sprintf("\n- %s: %s", r.at.Format("2006-01-02 Mon 3:04 PM"), plaintext.Short(plaintext.Line(r.text), overdueChars))
		if utf8.RuneCountInString(text)+utf8.RuneCountInString(line) > space {
			return text + fmt.Sprintf("\nand %d more.", len(list)-i)
		}
		text += line
	}
	return text
}
