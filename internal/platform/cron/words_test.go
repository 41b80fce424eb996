package cron_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/testkit"
)

func TestWords(t *testing.T) {
	tests := []struct{ expr, words string }{
		// Times.
		{"* * * * *", "every minute"},
		{"*/5 * * * *", "every 5 minutes"},
		{"2-59/5 * * * *", "every 5 minutes from 00:02"},
		{"*/7 * * * *", "every 7 minutes from minute 0 to 56 of every hour"},
		{"*/45 * * * *", "at minutes 0 and 45 of every hour"},
		{"5 * * * *", "every hour at minute 5"},
		{"@hourly", "every hour at minute 0"},
		{"0 */6 * * *", "every 6 hours from 00:00"},
		{"30 1-23/2 * * *", "every 2 hours from 01:30"},
		{"0 */5 * * *", "every 5 hours from 00:00 to 20:00"},
		{"* 9 * * *", "every minute of hour 9"},
		{"* 9-17 * * *", "every minute from 09:00 to 17:59"},
		{"* 9,12 * * *", "every minute of hours 9 and 12"},
		{"* */2 * * *", "every minute of every 2nd hour from 0 to 22"},
		{"*/15 9-17 * * *", "every 15 minutes from 09:00 to 17:45"},
		{"*/10 9 * * *", "every 10 minutes from 09:00 to 09:50"},
		{"0 9-17 * * *", "every hour from 09:00 to 17:00"},
		{"@daily", "at 00:00 every day"},
		{"0 9,12,15 * * *", "at 09:00, 12:00 and 15:00 every day"},
		{"5,20 8,18 * * *", "at 08:05, 08:20, 18:05 and 18:20 every day"},
		{"0 1,2,4,7,9,13,20 * * *", "at minute 0 of hours 1, 2, 4, 7, 9, 13 and 20 every day"},
		{"1,2,3,9 1,2 * * *", "at minutes 1 to 3 and 9 of hours 1 and 2 every day"},

		// Weekdays.
		{"0 9 * * 1-5", "at 09:00 on Monday to Friday"},
		{"0 9 * * 1", "at 09:00 on Mondays"},
		{"0 9 * * 0,6", "at 09:00 on Saturdays and Sundays"},
		{"0 9 * * fri-sun", "at 09:00 on Friday to Sunday"},
		{"0 9 * * mon-wed,sun", "at 09:00 on Monday to Wednesday and Sunday"},
		{"0 9 * * */2", "at 09:00 on Tuesdays, Thursdays, Saturdays and Sundays"},
		{"*/10 * * * 1", "every 10 minutes on Mondays"},

		// Dates and months.
		{"@monthly", "at 00:00 on the 1st of the month"},
		{"@yearly", "at 00:00 on the 1st of January"},
		{"0 0 1,15,21,22,23 * *", "at 00:00 on the 1st, 15th and 21st to 23rd of the month"},
		{"0 0 10,20,30 * *", "at 00:00 on the 10th, 20th and 30th of the month"},
		{"0 0 */2 * *", "at 00:00 on every 2nd day from the 1st to the 31st of the month"},
		{"0 0 2,3,11,12,13 1-3,7 *", "at 00:00 on the 2nd, 3rd and 11th to 13th of January to March and July"},
		{"0 9 * 3 *", "at 09:00 every day in March"},
		{"*/5 * * 3 1", "every 5 minutes on Mondays in March"},
		{"*/5 * * 3,4 *", "every 5 minutes in March and April"},

		// Both day fields.
		{"0 0 1 * 1", "at 00:00 on the 1st of the month and on Mondays"},
		{"0 9 13 3 5", "at 09:00 on the 13th and on Fridays, in March"},
		{"0 0 1-7 * */7", "at 00:00 on the 1st to 7th of the month when that is a Sunday"},
		{"0 0 1 3 */3", "at 00:00 on the 1st of March when that is a Wednesday, Saturday or Sunday"},
		{"0 0 31 2 1", "at 00:00 on Mondays in February"},
		{"0 0 1-29 2 1", "at 00:00 every day in February"},
		{"0 0 29,30 2 *", "at 00:00 on the 29th of February"},
		{"0 0 31 2 *", "never"},
	}
	for _, test := range tests {
		if got := parse(t, test.expr).Words(); got != test.words {
			t.Errorf("%q: %q, want %q", test.expr, got, test.words)
		}
	}
	if got := (cron.Schedule{}).Words(); got != "never" {
		t.Errorf("the zero schedule: %q", got)
	}
}

// Words leave nothing out: where they are equal, the meaning is.
func TestWordsAreComplete(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	said := map[string]spec{}
	check := func(s *spec) {
		words := parse(t, s.text).Words()
		other, ok := said[words]
		if ok && other.text != s.text && meaning(&other) != meaning(s) {
			t.Fatalf("%q and %q are both %q", other.text, s.text, words)
		}
		said[words] = *s
	}
	for range testkit.Full(12_000, 3000) {
		s := randomSpec(r, mix{})
		// One part varies and the rest is plain, so that words meet again.
		switch r.Intn(3) {
		case 0: // times
			s.keep(0, 1)
		case 1:
			s.keep(2, 3, 4)
		}
		check(&s)
	}
}

// keep makes every other field *.
func (s *spec) keep(fields ...int) {
	texts := strings.Fields(s.text)
	for i := range texts {
		if slices.Contains(fields, i) {
			continue
		}
		texts[i], s.star[i] = "*", true
		s.add(i, fieldLow[i], fieldHigh[i], 1)
	}
	s.text = strings.Join(texts, " ")
}

// meaning is when a spec fires, without its wildness.
func meaning(s *spec) string {
	var days []byte
	for at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() == 2000; at = at.AddDate(0, 0, 1) {
		for weekday := range time.Weekday(7) {
			day := byte('0')
			if s.onDate(at.Month(), at.Day(), weekday) {
				day = '1'
			}
			days = append(days, day)
		}
	}
	if !bytes.Contains(days, []byte("1")) {
		return "never"
	}
	return fmt.Sprint(s.set[0], s.set[1][:24], string(days))
}

func TestPerYear(t *testing.T) {
	r := rand.New(rand.NewSource(8))
	for range testkit.Full(600, 200) {
		s := randomSpec(r, mix{})
		year := 1890 + r.Intn(250)
		want, days := 0, 0
		for at := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() == year; at = at.AddDate(0, 0, 1) {
			if s.onDate(at.Month(), at.Day(), at.Weekday()) {
				days++
			}
		}
		for _, minute := range s.set[0] {
			for _, hour := range s.set[1][:24] {
				if minute && hour {
					want += days
				}
			}
		}
		if got := parse(t, s.text).PerYear(year); got != want {
			t.Errorf("%q fires %d times in %d, want %d", s.text, got, year, want)
		}
	}
	from := time.Date(2027, 12, 31, 23, 59, 59, 0, time.UTC)
	for _, expr := range []string{"* * * * *", "*/7 3 * * 1", "0 0 29 2 *", "@hourly", "0 0 31 2 *"} {
		want := 0
		for range parse(t, expr).Between(from, from.AddDate(1, 0, 0), time.UTC) {
			want++
		}
		if got := parse(t, expr).PerYear(2028); got != want {
			t.Errorf("%q fires %d times in 2028, want %d", expr, got, want)
		}
	}
	if got := (cron.Schedule{}).PerYear(2026); got != 0 {
		t.Errorf("the zero schedule fires %d times", got)
	}
}
