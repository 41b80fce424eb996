package timeparse

import (
	"errors"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"time"
)

func load(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// instant reads "2026-03-07 09:00", or with an offset where that is not clear.
func instant(t testing.TB, s string, zone *time.Location) time.Time {
	t.Helper()
	if at, err := time.ParseInLocation("2006-01-02 15:04 -0700", s, zone); err == nil {
		return at.In(zone)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", s, zone)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// want is an instant, "past", "far" or, for what is refused, a part of the error.
type want struct{ text, want string }

func check(t *testing.T, zoneName, now string, cases []want) {
	t.Helper()
	zone := load(t, zoneName)
	start := instant(t, now, zone)
	for _, c := range cases {
		at, err := Parse(c.text, start.UTC(), zone)
		var refused *unreadable
		switch {
		case err == nil:
			if got := at.Format("2006-01-02 15:04:05 MST"); got != c.want || at.Location() != zone {
				t.Errorf("%s, %s: %q is %s, want %s", zoneName, now, c.text, got, c.want)
			}
		case c.want == "past" && errors.Is(err, errPast), c.want == "far" && errors.Is(err, errFar):
		case errors.As(err, &refused) && strings.HasPrefix(c.want, "?") && strings.Contains(err.Error(), c.want[1:]):
		default:
			t.Errorf("%s, %s: %q: %v, want %s", zoneName, now, c.text, err, c.want)
		}
		if err != nil && (!at.IsZero() || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v with %q", c.text, at, err)
		}
	}
}

// 4 March 2026 is a Wednesday.
func TestClock(t *testing.T) {
	check(t, "America/Los_Angeles", "2026-03-04 12:00", []want{
		{"17:30", "2026-03-04 17:30:00 PST"},
		{"9:00", "2026-03-05 09:00:00 PST"},
		{"09:00:30", "2026-03-05 09:00:30 PST"},
		{"12:00", "2026-03-05 12:00:00 PST"},
		{"12:01", "2026-03-04 12:01:00 PST"},
		{"0:00", "2026-03-05 00:00:00 PST"},
		{"23:59:59", "2026-03-04 23:59:59 PST"},
		{"9am", "2026-03-05 09:00:00 PST"},
		{"9 AM", "2026-03-05 09:00:00 PST"},
		{"  at   9:15 \u00a0Pm\t", "2026-03-04 21:15:00 PST"},
		{"9:15\u202fPM", "2026-03-04 21:15:00 PST"}, // as JavaScript writes it
		{"12pm", "2026-03-05 12:00:00 PST"},
		{"12:30pm", "2026-03-04 12:30:00 PST"},
		{"12am", "2026-03-05 00:00:00 PST"},
		{"12:01 am", "2026-03-05 00:01:00 PST"},
		{"noon", "2026-03-05 12:00:00 PST"},
		{"Midnight", "2026-03-05 00:00:00 PST"},
		{"at noon", "2026-03-05 12:00:00 PST"},

		{"9", `?"9": a number alone is not enough (write 17:30, 9am,`},
		{"0900", "?a number alone"},
		{"13pm", "?cannot read"}, {"0am", "?cannot read"}, {"17:30pm", "?cannot read"}, {"9:5", "?cannot read"},
		{"24:00", "?cannot read"}, {"17:60", "?cannot read"}, {"17:30:60", "?cannot read"}, {"009:00", "?cannot read"},
		{"-9:00", "?cannot read"}, {"9.30", "?cannot read"}, {"9 a m", "?cannot read"}, {"9pm am", "?cannot read"},
		{"9:", "?cannot read"}, {":30", "?cannot read"}, {"17:30:", "?cannot read"}, {"17:30.5", "?cannot read"},
		{"am", "?cannot read"}, {"at", "?cannot read"}, {"9a", "?cannot read"}, {"noonish", "?cannot read"},
		{"９:00", "?cannot read"}, {"9:00+01:00", "?cannot read"}, {"9:00z", "?cannot read"}, {"at at 9am", "?cannot read"},
	})
}

func TestDay(t *testing.T) {
	check(t, "America/Los_Angeles", "2026-03-04 12:00", []want{
		{"tomorrow 9am", "2026-03-05 09:00:00 PST"},
		{"tomorrow at 9am", "2026-03-05 09:00:00 PST"},
		{"TOMORROW NOON", "2026-03-05 12:00:00 PST"},
		{"tomorrow 00:00", "2026-03-05 00:00:00 PST"},
		{"tomorrow", "2026-03-05 09:00:00 PST"},
		{"today 17:30", "2026-03-04 17:30:00 PST"},
		{"today 9am", "past"},
		{"today 12:00", "past"},
		{"today", "past"},
		{"friday", "2026-03-06 09:00:00 PST"},
		{"fri 9:00", "2026-03-06 09:00:00 PST"},
		{"monday 9am", "2026-03-09 09:00:00 PDT"},
		{"next monday 9am", "2026-03-09 09:00:00 PDT"},
		{"wednesday 13:00", "2026-03-04 13:00:00 PST"},
		{"wed 11:00", "2026-03-11 11:00:00 PDT"},
		{"wed 12:00", "2026-03-11 12:00:00 PDT"},
		{"next wed 13:00", "2026-03-11 13:00:00 PDT"},
		{"next tue", "2026-03-10 09:00:00 PDT"},

		{"tomorrow midnight", "?ambiguous"}, {"friday at midnight", "?ambiguous"},
		{"tomorrow in the evening", `?"tomorrow in the evening": cannot read "in the evening" (write`},
		{"in the evening", "?cannot read"}, {"tonight", "?cannot read"}, {"next week", "?cannot read"}, {"next", "?cannot read"},
		{"tomorrow 9", "?a number alone"}, {"tomorrow 9am 10am", "?cannot read"}, {"9am tomorrow", "?cannot read"},
		{"next tomorrow", "?cannot read"}, {"next next monday", "?cannot read"}, {"mond", "?cannot read"}, {"tomorow", "?cannot read"},
		{"every monday", "?cannot read"}, {"tomorrow at", "?cannot read"}, {"", "?empty"}, {" \n ", "?empty"},
		{"yesterday", "?cannot read"}, {"in 45m", "?cannot read"}, {"45m", "?cannot read"}, {"\u212a", "?cannot read"},
		{strings.Repeat("x\x1b", 500), `?x\x1bx…"`},
	})
}

func TestDate(t *testing.T) {
	check(t, "America/Los_Angeles", "2026-03-04 12:00", []want{
		{"2026-03-07", "2026-03-07 09:00:00 PST"},
		{"2026-03-07 9am", "2026-03-07 09:00:00 PST"},
		{"2026-03-07 at 9:15 pm", "2026-03-07 21:15:00 PST"},
		{"2026-03-07T09:00", "2026-03-07 09:00:00 PST"},
		{"2026-03-07t09:00:05", "2026-03-07 09:00:05 PST"},
		{"2026-03-07 09:00:05.123", "2026-03-07 09:00:05 PST"},
		{"2026-03-07T09:00Z", "2026-03-07 01:00:00 PST"},
		{"2026-03-07T09:00:00z", "2026-03-07 01:00:00 PST"},
		{"2026-03-07T09:00:00.999Z", "2026-03-07 01:00:00 PST"},
		{"2026-03-07T09:00:00+01:00", "2026-03-07 00:00:00 PST"},
		{"2026-03-07 09:00:00-08:00", "2026-03-07 09:00:00 PST"},
		{"2026-03-07T00:15+05:45", "2026-03-06 10:30:00 PST"},
		{"2026-03-04T12:00:01-08:00", "2026-03-04 12:00:01 PST"},
		{"march 7", "2026-03-07 09:00:00 PST"},
		{"march 7 9am", "2026-03-07 09:00:00 PST"},
		{"Mar 07 at 9:00", "2026-03-07 09:00:00 PST"},
		{"7 march", "2026-03-07 09:00:00 PST"},
		{"7 march 2026 09:00", "2026-03-07 09:00:00 PST"},
		{"March 7, 2026 9am", "2026-03-07 09:00:00 PST"},
		{"may 1 2027", "2027-05-01 09:00:00 PDT"},
		{"4 march 13:00", "2026-03-04 13:00:00 PST"},
		{"4 march 11:00", "2027-03-04 11:00:00 PST"},
		{"3 mar", "2027-03-03 09:00:00 PST"},
		{"29 feb", "2028-02-29 09:00:00 PST"},
		{"feb 29 2028 9:00", "2028-02-29 09:00:00 PST"},
		{"2036-03-04 12:00", "2036-03-04 12:00:00 PST"},

		{"2036-03-04 12:01", "far"}, {"7 march 2037", "far"}, {"9999-12-31", "far"}, {"9999-12-31T23:59:59-14:00", "far"},
		{"2026-03-04", "past"}, {"2026-03-04T12:00:00-08:00", "past"}, {"2025-12-31 9am", "past"}, {"0001-01-01", "past"},
		{"7 march 2025", "past"}, {"0000-01-01T00:00+14:00", "past"}, {"2026-03-04T12:00:00.999-08:00", "past"},
		{"2026-02-30", "?no such date"}, {"2026-13-01", "?no such date"}, {"2026-00-10", "?no such date"},
		{"2026-02-29T09:00Z", "?no such date"}, {"feb 30", "?no such date"}, {"29 feb 2027", "?no such date"},
		{"7/3/2026", `?"7/3/2026": day or month first? (write`}, {"3/7 9am", "?day or month first"},
		{"7.3.2026", "?cannot read"}, {"7-3-2026", "?cannot read"}, {"2026-3-7", "?cannot read"}, {"20260307", "?a number alone"},
		{"2026-03-07T", "?cannot read"}, {"2026-03-07T9", "?a number alone"}, {"2026-03-07T09:00 Z", "?cannot read"},
		{"2026-03-07T09:00+0100", "?cannot read"}, {"2026-03-07T09:00+15:00", "?cannot read"}, {"2026-03-07T09:00+01", "?cannot read"},
		{"2026-03-07T09:00+01:60", "?cannot read"}, {"2026-03-07T9amZ", "?cannot read"}, {"2026-03-07T09:00ZZ", "?cannot read"},
		{"2026-03-07 midnight", "?ambiguous"}, {"2026-03-07Z", "?cannot read"}, {"2026-03-07+01:00", "?cannot read"},
		{"32 march", "?cannot read"}, {"0 march", "?no such date"}, {"march", "?cannot read"}, {"march 2027", "?cannot read"},
		{"march 7th", "?cannot read"}, {"7 march 26", "?a number alone"}, {"march 7, 9am", "?cannot read"}, {"march march", "?cannot read"},
		{"7 8 2026", "?cannot read"}, {"saturday march 7", "?cannot read"}, {"7 march 2026 2027", "?a number alone"},
	})
	check(t, "UTC", "2096-03-01 00:00", []want{{"feb 29", "2104-02-29 09:00:00 UTC"}}) // 2100 is no leap year
}

// Clocks in New York go from 02:00 to 03:00 on 8 March 2026 and from 02:00 back to 01:00 on 1 November.
func TestChangeOfClocks(t *testing.T) {
	check(t, "America/New_York", "2026-03-07 12:00", []want{
		{"tomorrow 1:59", "2026-03-08 01:59:00 EST"},
		{"tomorrow 2:00", "2026-03-08 03:00:00 EDT"},
		{"tomorrow 2:30", "2026-03-08 03:00:00 EDT"},
		{"2:30", "2026-03-08 03:00:00 EDT"},
		{"sunday 3:00", "2026-03-08 03:00:00 EDT"},
		{"2026-03-08T02:30:00-05:00", "2026-03-08 03:30:00 EDT"},
	})
	check(t, "America/New_York", "2026-03-08 03:00", []want{
		{"2:30", "2026-03-09 02:30:00 EDT"},
		{"today 2:30", "past"},
	})
	check(t, "America/New_York", "2026-10-31 12:00", []want{
		{"tomorrow 00:59", "2026-11-01 00:59:00 EDT"},
		{"tomorrow 1am", "2026-11-01 01:00:00 EDT"},
		{"tomorrow 1:30", "2026-11-01 01:30:00 EDT"},
		{"tomorrow 2am", "2026-11-01 02:00:00 EST"},
	})
	check(t, "America/New_York", "2026-11-01 01:40 -0400", []want{ // in the first showing
		{"1:50", "2026-11-01 01:50:00 EDT"},
		{"1:30", "2026-11-01 01:30:00 EST"},
		{"today 1:40", "2026-11-01 01:40:00 EST"},
	})
	check(t, "America/New_York", "2026-11-01 01:40 -0500", []want{ // in the second
		{"1:50", "2026-11-01 01:50:00 EST"},
		{"1:30", "2026-11-02 01:30:00 EST"},
		{"today 1:30", "past"},
	})
	check(t, "Australia/Lord_Howe", "2026-10-03 12:00", []want{
		{"tomorrow 2:15", "2026-10-04 02:30:00 +11"},
		{"tomorrow 1:59", "2026-10-04 01:59:00 +1030"},
	})
	check(t, "Australia/Lord_Howe", "2026-04-04 12:00", []want{
		{"tomorrow 1:45", "2026-04-05 01:45:00 +11"},
		{"tomorrow 2:00", "2026-04-05 02:00:00 +1030"},
	})
	check(t, "Asia/Beirut", "2026-03-28 12:00", []want{ // no midnight that night
		{"midnight", "2026-03-29 01:00:00 EEST"},
		{"tomorrow 00:30", "2026-03-29 01:00:00 EEST"},
	})
	check(t, "Pacific/Apia", "2011-12-29 10:00", []want{ // 30 December did not happen
		{"9am", "2011-12-31 00:00:00 +14"},
		{"tomorrow", "2011-12-31 00:00:00 +14"},
		{"friday 9am", "2011-12-31 00:00:00 +14"},
		{"saturday 9am", "2011-12-31 09:00:00 +14"},
		{"2011-12-30 23:59", "2011-12-31 00:00:00 +14"},
	})
	check(t, "Africa/Casablanca", "2026-02-13 12:00", []want{ // back on 15 February, forward again on 22 March
		{"next saturday 9am", "2026-02-14 09:00:00 +01"},
		{"16 feb 9am", "2026-02-16 09:00:00 +00"},
		{"22 march 2:30", "2026-03-22 03:00:00 +01"},
	})
	check(t, "Asia/Kathmandu", "2026-03-04 12:00", []want{{"tomorrow 9am", "2026-03-05 09:00:00 +0545"}})
}

func TestDelay(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"45m": 45 * time.Minute, "2h": 2 * time.Hour, "1h30m": 90 * time.Minute, "90s": 90 * time.Second, "3d": 3 * day, "1w": 7 * day,
		"45 minutes": 45 * time.Minute, "2 HOURS": 2 * time.Hour, "1 hour 30 minutes": 90 * time.Minute, " 1h   30m ": 90 * time.Minute,
		"1 day": day, "2 weeks": 14 * day, "1 hr": time.Hour, "10mins": 10 * time.Minute, "1 sec": time.Second, "1w2d3h4m5s": 9*day + 3*time.Hour + 4*time.Minute + 5*time.Second,
		"0h5m": 5 * time.Minute, "1h90m": 150 * time.Minute, "3650d": 3650 * day, "007m": 7 * time.Minute,
	} {
		if d, err := Delay(text); d != want || err != nil {
			t.Errorf("%q: %v, %v, want %v", text, d, err, want)
		}
	}
	for text, want := range map[string]string{
		"":             `"": empty (write 45m,`,
		"45":           `"45": a number alone is not enough (write 45m,`,
		"1h 30":        "a number alone",
		"30m1h":        "the largest unit comes first",
		"1h1h":         "each only once",
		"1 h 1 hr":     "each only once",
		"0":            "a number alone",
		"0m":           "that is now",
		"0h0s":         "that is now",
		"1.5h":         `cannot read "1.5h"`,
		"half an hour": "cannot read", "an hour": "cannot read", "m": "cannot read", "-5m": "cannot read", "+5m": "cannot read",
		"5 parsecs": "cannot read", "1mo": "cannot read", "1y": "cannot read", "1h and 30m": `cannot read "and 30m"`, "1h, 30m": "cannot read",
		"in 5m": "cannot read", "9am": "cannot read", "5µs": "cannot read", "5ms": "cannot read", "tomorrow": "cannot read",
		"1s99999999999999999999": "a number alone", "99999999999999999999h 5x": "cannot read",
	} {
		d, err := Delay(text)
		var refused *unreadable
		if d != 0 || !errors.As(err, &refused) || !strings.Contains(err.Error(), want) || refused.text != text {
			t.Errorf("%q: %v, %v, want %s", text, d, err, want)
		}
	}
	for _, text := range []string{"3651d", "3650d1s", "999999999w", "99999999999999999999m", "522w", "18446744074s", "99999999999999999999w1s"} {
		if d, err := Delay(text); d != 0 || !errors.Is(err, errFar) {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
}

func TestEither(t *testing.T) {
	zone := load(t, "America/New_York")
	now := time.Date(2026, 3, 8, 6, 30, 0, 7e8, time.UTC) // 01:30 EST, half an hour before a gap
	for text, want := range map[string]string{
		"45m": "03:15:00 EDT", "in 1h30m": "04:00:00 EDT", "IN 1 second": "01:30:01 EST", "17:30": "17:30:00 EDT", "today 5pm": "17:00:00 EDT",
	} {
		at, err := Either(text, now, zone)
		if err != nil || at.Format("15:04:05 MST") != want || at.Nanosecond() != 0 {
			t.Errorf("%q: %v, %v, want %s", text, at, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "empty (write 45m, 1h30m, 3d, 17:30", "in": "cannot read", "in 17:30": "cannot read", "30": "a number alone",
		"0m": "(write 45m", "in 9999w": "is more than ten years ahead", "2099-01-01": "is more than ten years ahead",
		"today 1am": `"today 1am" is 2026-03-08 01:00:00 EST, in the past`,
	} {
		at, err := Either(text, now, zone)
		if !at.IsZero() || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %s", text, at, err, want)
		}
	}
}

// Whatever the package comment promises is understood, and nothing is both a time and a delay.
func TestEveryDocumentedForm(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "when.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	times, delays, _ := strings.Cut(file.Doc.Text(), "Delays (")
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	forms := regexp.MustCompile(`(?m)^\t(.+?)   *\S`)
	for i, part := range []string{times, delays} {
		found := forms.FindAllStringSubmatch(part, -1)
		if want := []int{13, 3}[i]; len(found) != want {
			t.Errorf("%d forms in the comment, want %d: %q", len(found), want, found)
		}
		for _, f := range found {
			_, errTime := Parse(f[1], now, time.UTC)
			_, errDelay := Delay(f[1])
			_, errEither := Either(f[1], now, time.UTC)
			if (errTime == nil) != (i == 0) || (errDelay == nil) != (i == 1) || errEither != nil {
				t.Errorf("%q: %v; %v; %v", f[1], errTime, errDelay, errEither)
			}
		}
	}
}

// What an error says can be written can be.
func TestFormsInErrors(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	_, errTime := Parse("?", now, time.UTC)
	_, errDelay := Delay("?")
	_, errEither := Either("?", now, time.UTC)
	for _, err := range []error{errTime, errDelay, errEither} {
		var refused *unreadable
		if !errors.As(err, &refused) {
			t.Fatal(err)
		}
		for _, form := range regexp.MustCompile(`, | or `).Split(refused.forms, -1) {
			if _, err := Either(form, now, time.UTC); err != nil {
				t.Error(err)
			}
		}
	}
}
