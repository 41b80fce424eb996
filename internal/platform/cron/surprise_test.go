package cron_test

import (
	"slices"
	"testing"

	"github.com/ollim/ollim/internal/platform/cron"
)

func TestSurprises(t *testing.T) {
	const both = "fires only on dates that match both day fields, because one of them starts with *"
	tests := []struct {
		expr      string
		surprises []string
	}{
		// The day fields.
		{"0 9 13 * 5", []string{"fires on the 13th and on every Friday, not only on Friday the 13th"}},
		{"0 9 1-7 * 1", []string{"fires on the 1st to 7th and on every Monday, not only on days that are both"}},
		{"0 9 1 * 1-5", []string{"fires on the 1st and on Monday to Friday, not only on days that are both"}},
		{"0 9 1 * 0,6", []string{"fires on the 1st and on Saturdays and Sundays, not only on days that are both"}},
		{"0 0 1-7 * */7", []string{both}},
		{"0 0 */2 * 1", []string{both}},
		{"0 0 1-31 * 5", nil},
		{"0 0 1-29 2 */3", nil},
		{"* * 31 2 *", []string{"February has no 31st"}},

		// Steps that do not fit.
		{"*/7 * * * *", []string{"*/7 starts again at each full hour: minute 56 is followed by minute 0"}},
		{"*/45 9,10 * * *", []string{"*/45 starts again at each full hour: minute 45 is followed by minute 0"}},
		{"*/7 9 * * *", nil},
		{"0,7,14,21,28,35,42,49,56 * * * *", nil},
		{"*/7,3 * * * *", nil},
		{"*/15 * * * *", nil},
		{"*/60 * * * *", nil},
		{"0 */5 * * *", []string{"*/5 starts again at midnight: hour 20 is followed by hour 0"}},
		{"0 */13 * * *", []string{"*/13 starts again at midnight: hour 13 is followed by hour 0"}},
		{"0 */6 * * *", nil},
		{"0 */24 * * *", nil},
		{"0 0 */2 * *", []string{"every 2nd day starts again on the 1st of each month: the last step of a month may be shorter"}},
		{"0 0 */7 * *", []string{"every 7th day starts again on the 1st of each month: the last step of a month may be shorter"}},
		{"0 0 */2 3 *", nil},
		{"0 0 1,16 * *", nil},
		{"0 0 1,3,5 * *", nil},

		// Dates that do not exist.
		{"0 0 31 * *", []string{"the 31st exists in 7 months"}},
		{"0 0 15,31 * *", []string{"the 31st exists in 7 months"}},
		{"0 0 30 * *", []string{"February has no 30th"}},
		{"0 0 10,20,30 * *", []string{"February has no 30th"}},
		{"0 0 30,31 * *", []string{"February has no 30th"}},
		{"0 0 31 3,4,6 *", []string{"April and June have no 31st"}},
		{"0 0 31 3,5 *", nil},
		{"0 0 29 2 *", []string{"the 29th of February exists only in leap years"}},
		{"0 0 29-31 * *", []string{"the 29th of February exists only in leap years"}},
		{"0 0 29 3 *", nil},
		{"0 0 28-31 * *", nil},
		{"0 0 31 2 1", []string{"February has no 31st"}},
		{"0 0 31 2,4 *", []string{"February and April have no 31st"}},

		// Every minute.
		{"* 9 * * *", []string{"fires every minute of hour 9: 60 times a day"}},
		{"* 9-17 * * 1-5", []string{"fires every minute of hours 9 to 17: 540 times a day"}},
		{"* */2 * * *", []string{"fires every minute of every 2nd hour from 0 to 22: 720 times a day"}},
		{"* * 1 * *", []string{"fires every minute of the day: 1440 times a day"}},
		{"* * * * 1", []string{"fires every minute of the day: 1440 times a day"}},
		{"0-59 9 * * *", nil},
		{"* * * * *", nil},

		{"* 9 31 * 5", []string{
			"fires every minute of hour 9: 60 times a day",
			"fires on the 31st and on every Friday, not only on Friday the 31st",
			"the 31st exists in 7 months",
		}},
		{"0 9 * * 1-5", nil},
		{"@hourly", nil},
		{"@daily", nil},
		{"@weekly", nil},
		{"@monthly", nil},
		{"@yearly", nil},
	}
	for _, test := range tests {
		if got := parse(t, test.expr).Surprises(); !slices.Equal(got, test.surprises) {
			t.Errorf("%q:\n got %q\nwant %q", test.expr, got, test.surprises)
		}
	}
	if got := (cron.Schedule{}).Surprises(); got != nil {
		t.Errorf("the zero schedule: %q", got)
	}
}
