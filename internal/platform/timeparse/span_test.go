package timeparse

import (
	"errors"
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ span, at, end string }{
		{"22:00-07:00", "2026-03-28 21:59", ""},
		{"22:00-07:00", "2026-03-28 22:00", "2026-03-29 07:00"}, // the clocks go forward in this night
		{"22:00-07:00", "2026-10-25 02:30", "2026-10-25 07:00"}, // and back in this one
		{"22:00-07:00", "2026-10-25 06:59", "2026-10-25 07:00"},
		{"22:00-07:00", "2026-10-25 07:00", ""},
		{"12:30-14:00", "2026-06-01 13:00", "2026-06-01 14:00"},
		{"12:30-14:00", "2026-06-01 12:29", ""},
		{"none", "2026-06-01 03:00", ""},
		{"off", "2026-06-01 00:00", ""},
		{"00:00-06:00", "2026-06-01 00:00", "2026-06-01 06:00"},
	} {
		s, err := ReadSpan(test.span)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.ParseInLocation("2006-01-02 15:04", test.at, zone)
		if err != nil {
			t.Fatal(err)
		}
		want := at
		if test.end != "" {
			if want, err = time.ParseInLocation("2006-01-02 15:04", test.end, zone); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Contains(at); got != (test.end != "") {
			t.Errorf("%s contains %s: %v", test.span, test.at, got)
		}
		if got := s.End(at); !got.Equal(want) {
			t.Errorf("%s at %s ends %s, want %s", test.span, test.at, got, want)
		}
	}
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ span, at, end string }{
		{"22:00-02:30", "2026-03-08T06:50:20Z", "2026-03-08T07:00:00Z"}, // the clocks go from 2:00 to 3:00
		{"22:00-01:30", "2026-11-01T05:10:00Z", "2026-11-01T05:30:00Z"}, // and from 2:00 to 1:00
		{"22:00-01:30", "2026-11-01T06:10:00Z", "2026-11-01T06:30:00Z"},
	} {
		s, err := ReadSpan(test.span)
		at, atErr := time.Parse(time.RFC3339, test.at)
		want, endErr := time.Parse(time.RFC3339, test.end)
		if err := errors.Join(err, atErr, endErr); err != nil {
			t.Fatal(err)
		}
		if got := s.End(at.In(newYork)); !got.Equal(want) {
			t.Errorf("%s at %s ends %s, want %s", s, at, got, want)
		}
	}
	for _, bad := range []string{"", "22-7", "22:00", "22:00-22:00", "25:00-07:00", "never"} {
		if s, err := ReadSpan(bad); err == nil {
			t.Errorf("%q is read as %s", bad, s)
		}
	}
}
