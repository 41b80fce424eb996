package cron

import (
	"strings"
	"testing"
)

// TestPlainEnglish: the error of a schedule in words shows the line that is meant, and shows none where that is not clear.
func TestPlainEnglish(t *testing.T) {
	for text, want := range map[string]string{
		"every day at 9": "0 9 * * *", "daily at 9:30": "30 9 * * *", "every weekday at 9am": "0 9 * * 1-5", "Weekdays at 18:05": "5 18 * * 1-5",
		"every Monday at 7 pm": "0 19 * * 1", "mon, wed and fri at 8": "0 8 * * 1,3,5", "weekends at noon": "0 12 * * 0,6", "every hour": "0 * * * *",
		"hourly": "0 * * * *", "every 15 minutes": "*/15 * * * *", "every 2 hours": "0 */2 * * *", "every minute": "* * * * *", "daily": "@daily",
		"monthly at 6": "0 6 1 * *", "the 15th of each month at 6:00": "0 6 15 * *", "every day at 12am": "0 0 * * *", "at midnight every day": "0 0 * * *",
		"every week at 9": "0 9 * * 1", "first of the month at 9": "0 9 1 * *",
		"every day": "@daily", "tomorrow at 9": "", "every day at 25": "", "every blue moon": "", "at 9": "", "every monday": "", "9": "", "": "",
		"every 3 days": "", "every 90 minutes": "", "every day at 13pm": "",
	} {
		_, err := Parse(text)
		if err == nil {
			t.Errorf("%q is taken for a cron line", text)
			continue
		}
		if _, shown, _ := strings.Cut(err.Error(), "not a cron line (write "); strings.TrimSuffix(shown, ")") != want {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
