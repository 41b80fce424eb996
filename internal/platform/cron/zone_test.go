package cron_test

import (
	"encoding/binary"
	"math/rand"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit"
)

// change is one recorded change of clocks.
type change struct {
	at     time.Time
	hours  int // offset from then on
	summer bool
}

// compactZone makes a zone in the compact form of the database, which records
// few changes and leaves the rest to a yearly rule. Alpine and the copy that is
// built into Go programs use this form; Debian's is long until 2037.
func compactZone(t *testing.T, name, rule string, before int, changes ...change) *time.Location {
	t.Helper()
	header := func(changes int) []byte {
		b := append([]byte("TZif2"), make([]byte, 15)...)
		types := changes + 1
		if changes == 0 {
			types = 0
		}
		for _, n := range []int{0, 0, 0, changes, types, types * 4} {
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
		return b
	}
	data := append(header(0), header(len(changes))...)
	for _, c := range changes {
		data = binary.BigEndian.AppendUint64(data, uint64(c.at.Unix()))
	}
	for i := range changes {
		data = append(data, byte(i+1))
	}
	for i, c := range append([]change{{hours: before}}, changes...) {
		data = binary.BigEndian.AppendUint32(data, uint32(int32(c.hours*3600)))
		summer := byte(0)
		if c.summer {
			summer = 1
		}
		data = append(data, summer, byte(i*4))
	}
	for i := range len(changes) + 1 {
		data = append(data, 'Z', 'A'+byte(i), 'T', 0)
	}
	data = append(data, "\n"+rule+"\n"...)
	zone, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// Time.ZoneBounds is wrong in two ways where a yearly rule takes over: it may
// put the start of a period before the last recorded change, and the end of
// the period around 31 December of a leap year before that day.
func TestCompactZones(t *testing.T) {
	utc := func(year int, month time.Month, day, hour int) time.Time {
		return time.Date(year, month, day, hour, 0, 0, 0, time.UTC)
	}
	const alaska, eastern, sydney = "AKST9AKDT,M3.2.0,M11.1.0", "EST5EDT,M3.2.0,M11.1.0", "AEST-10AEDT,M10.1.0,M4.1.0/3"
	tests := []struct {
		zone *time.Location
		from time.Time
		days int
	}{
		{compactZone(t, "Metlakatla", alaska, -9, change{utc(2018, 11, 4, 10), -8, false},
			change{utc(2019, 1, 20, 10), -9, false}), utc(2018, 12, 28, 3), 30},
		{compactZone(t, "Winamac", eastern, -6, change{utc(2007, 3, 11, 8), -4, true}), utc(2007, 3, 9, 3), 4},
		{compactZone(t, "Juarez", "MST7MDT,M3.2.0,M11.1.0", -6, change{utc(2022, 10, 30, 6), -6, false},
			change{utc(2022, 11, 30, 6), -7, false}), utc(2022, 11, 4, 3), 30},
		{compactZone(t, "New York", eastern, -5, change{utc(2007, 3, 11, 7), -4, true}), utc(2028, 12, 29, 3), 5},
		{compactZone(t, "Sydney", sydney, 10, change{utc(2007, 10, 27, 16), 11, true}), utc(2028, 12, 29, 3), 5},
	}
	count := testkit.Full(40, 10)
	r := rand.New(rand.NewSource(31))
	for _, test := range tests {
		bruteForce(t, r, test.zone, test.from, test.from.AddDate(0, 0, test.days), count)
	}
}
