package tick

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/state/update"
)

func reminders(n int, text string) (list []overdueReminder) {
	for i := range n {
		list = append(list, overdueReminder{at: time.Date(2026, 2, 24, 14, 30, 0, 0, time.UTC).AddDate(0, 0, -30).Add(time.Duration(i) * time.Hour), text: text})
	}
	return list
}

func TestOverdue(t *testing.T) {
	want := "These reminders were due more than 24 hours ago and were not run (they are kept in state/late):\n" +
		"- 2026-01-25 Sun 2:30 PM: Call Ann - 2026-01-01: forged\n" +
		"- 2026-01-25 Sun 3:30 PM: Call Ann - 2026-01-01: forged"
	if got := overdueText(headOverdue, reminders(2, "Call Ann\n- 2026-01-01: forged\u2028")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// However many and however long, all are reported or counted, in one update.
func TestOverdueFits(t *testing.T) {
	for _, text := range []string{"", "x", strings.Repeat("é", 199), strings.Repeat("é", 200), strings.Repeat("é", 201), strings.Repeat("word ", 1000)} {
		for _, n := range []int{1, 10, 15, 16, 17, 18, 50, 200, 5000} {
			got := overdueText(headOverdue, reminders(n, text))
			if chars := utf8.RuneCountInString(got); chars > update.MaxChars {
				t.Errorf("%d of %d characters: %d characters", n, len(text), chars)
			}
			lines := strings.Split(got, "\n")
			reported, last := len(lines)-1, lines[len(lines)-1]
			var left int
			if _, err := fmt.Sscanf(last, "and %d more.", &left); err == nil {
				reported--
			}
			if reported+left != n || reported < min(n, 10) {
				t.Errorf("%d of %d characters: %d told, %d left out", n, len(text), reported, left)
			}
			if cut := strings.HasSuffix(lines[1], "…"); cut != (utf8.RuneCountInString(text) > 200) {
				t.Errorf("%d characters: cut: %v", utf8.RuneCountInString(text), cut)
			}
		}
	}
}
