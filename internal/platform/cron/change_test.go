package cron_test

import (
	"testing"
	"time"
)

// Clocks in New York go from 02:00 to 03:00 on 8 March 2026 and from 02:00
// back to 01:00 on 1 November.
func TestNewYorkGap(t *testing.T) {
	const form = "2 15:04 MST"
	zone := load(t, "America/New_York")
	checkKnown(t, zone, "2026-03-08 00:10", "2026-03-09 02:10", form, []known{
		{"30 2 * * *", "8 03:00 EDT"},
		{"0 2 * * *", "8 03:00 EDT, 9 02:00 EDT"},
		{"0,30 2 * * *", "8 03:00 EDT, 9 02:00 EDT"},
		{"15,45 1-2 * * *", "8 01:15 EST, 8 01:45 EST, 8 03:00 EDT, 9 01:15 EDT, 9 01:45 EDT"},
		{"59 1 * * *", "8 01:59 EST, 9 01:59 EDT"},
		{"0 3 * * *", "8 03:00 EDT"},
		{"0 2,3 * * *", "8 03:00 EDT, 9 02:00 EDT"},
		{"30 2,3 * * *", "8 03:00 EDT, 8 03:30 EDT"},
		{"30 2 8 3 *", "8 03:00 EDT"},
		{"30 2 9 3 *", ""},
		{"30 2 * * 7", "8 03:00 EDT"},
		{"*/20 2 * * *", "9 02:00 EDT"},
		{"0 */2 * * *", "8 04:00 EDT, 8 06:00 EDT, 8 08:00 EDT, 8 10:00 EDT, 8 12:00 EDT, 8 14:00 EDT, " +
			"8 16:00 EDT, 8 18:00 EDT, 8 20:00 EDT, 8 22:00 EDT, 9 00:00 EDT, 9 02:00 EDT"},
	})
	checkKnown(t, zone, "2026-03-08 01:10", "2026-03-08 03:50", form, []known{
		{"30 * * * *", "8 01:30 EST, 8 03:30 EDT"},
		{"30 0-23 * * *", "8 01:30 EST, 8 03:00 EDT, 8 03:30 EDT"},
		{"@hourly", "8 03:00 EDT"},
		{"*/15 * * * *", "8 01:15 EST, 8 01:30 EST, 8 01:45 EST, 8 03:00 EDT, 8 03:15 EDT, 8 03:30 EDT, 8 03:45 EDT"},
	})
	// A window that ends, or starts, at the very change.
	checkKnown(t, zone, "2026-03-08 01:30", "2026-03-08 03:00", form, []known{
		{"30 1,2 * * *", "8 03:00 EDT"},
		{"0 * * * *", "8 03:00 EDT"},
	})
	checkKnown(t, zone, "2026-03-08 03:00", "2026-03-08 04:00", form, []known{
		{"30 2 * * *", ""},
		{"0 * * * *", "8 04:00 EDT"},
	})
}

func TestNewYorkOverlap(t *testing.T) {
	const form = "2 15:04 MST"
	zone := load(t, "America/New_York")
	checkKnown(t, zone, "2026-11-01 00:10", "2026-11-01 03:00", form, []known{
		{"30 1 * * *", "1 01:30 EDT"},
		{"0 1 * * *", "1 01:00 EDT"},
		{"59 1 * * *", "1 01:59 EDT"},
		{"0 2 * * *", "1 02:00 EST"},
		{"30 2 * * *", "1 02:30 EST"},
		{"15,45 1-2 * * *", "1 01:15 EDT, 1 01:45 EDT, 1 02:15 EST, 1 02:45 EST"},
		{"30 * * * *", "1 00:30 EDT, 1 01:30 EDT, 1 01:30 EST, 1 02:30 EST"},
		{"@hourly", "1 01:00 EDT, 1 01:00 EST, 1 02:00 EST, 1 03:00 EST"},
		{"*/20 1 * * *", "1 01:00 EDT, 1 01:20 EDT, 1 01:40 EDT, 1 01:00 EST, 1 01:20 EST, 1 01:40 EST"},
		{"*/20 2 * * *", "1 02:00 EST, 1 02:20 EST, 1 02:40 EST"},
		{"30 */1 * * *", "1 00:30 EDT, 1 01:30 EDT, 1 01:30 EST, 1 02:30 EST"},
	})
	// Asked from inside the repeated hour.
	checkKnown(t, zone, "2026-11-01 01:20 -0500", "2026-11-01 02:20 -0500", form, []known{
		{"30 1 * * *", ""},
		{"*/30 * * * *", "1 01:30 EST, 1 02:00 EST"},
	})
}

func TestHalfHourChange(t *testing.T) {
	zone := load(t, "Australia/Lord_Howe")
	checkKnown(t, zone, "2026-10-04 01:40", "2026-10-04 03:00", "15:04 MST", []known{
		{"0,15 2 * * *", "02:30 +11"},
		{"45 1-2 * * *", "01:45 +1030, 02:45 +11"},
		{"*/15 * * * *", "01:45 +1030, 02:30 +11, 02:45 +11, 03:00 +11"},
	})
	checkKnown(t, zone, "2026-04-05 01:20", "2026-04-05 02:20", "15:04 MST", []known{
		{"29,30,59 1 * * *", "01:29 +11, 01:30 +11, 01:59 +11"},
		{"*/15 1 * * *", "01:30 +11, 01:45 +11, 01:30 +1030, 01:45 +1030"},
	})
}

func TestMidnightChange(t *testing.T) {
	zone := load(t, "America/Sao_Paulo")
	checkKnown(t, zone, "2017-10-14 12:00", "2017-10-15 12:00", "2 15:04", []known{
		{"@daily", "15 01:00"},
		{"30 0 15 10 *", "15 01:00"},
		{"0,30 0 * * 0", "15 01:00"},
		{"30 0 14,16 10 *", ""},
		{"*/30 0 * * *", ""},
	})
	checkKnown(t, zone, "2018-02-17 22:45", "2018-02-18 00:30", "2 15:04 MST", []known{
		{"30 23 * * *", "17 23:30 -02"},
		{"0 0 * * *", "18 00:00 -03"},
		{"*/30 * * * 6", "17 23:00 -02, 17 23:30 -02, 17 23:00 -03, 17 23:30 -03"},
	})
	checkKnown(t, load(t, "Asia/Beirut"), "2026-03-28 23:00", "2026-03-29 12:00", "2 15:04", []known{
		{"@daily", "29 01:00"},
		{"59 0 * * 0", "29 01:00"},
		{"@hourly", "29 01:00, 29 02:00, 29 03:00, 29 04:00, 29 05:00, 29 06:00, 29 07:00, 29 08:00, 29 09:00, " +
			"29 10:00, 29 11:00, 29 12:00"},
	})
}

func TestWholeDayChange(t *testing.T) {
	// 30 December 2011 did not happen.
	checkKnown(t, load(t, "Pacific/Apia"), "2011-12-29 00:00", "2011-12-31 12:00", "2 15:04", []known{
		{"0 9 * * *", "29 09:00, 31 00:00, 31 09:00"},
		{"0 9 30 12 *", "31 00:00"},
		{"0 9 * * 5", "31 00:00"},
		{"0 9 31 12 *", "31 09:00"},
		{"0 */12 * * *", "29 12:00, 31 00:00, 31 12:00"},
	})
	// 30 September 1969 happened nearly twice.
	checkKnown(t, load(t, "Pacific/Kwajalein"), "1969-09-30 00:00 +1100", "1969-10-01 12:00", "2 15:04 MST", []known{
		{"0 1,2,23 * * *", "30 01:00 +11, 30 02:00 +11, 30 23:00 +11, 1 01:00 -12, 1 02:00 -12"},
		{"0 */12 * * *", "30 12:00 +11, 30 12:00 -12, 1 00:00 -12, 1 12:00 -12"},
	})
}

func TestUnevenChange(t *testing.T) {
	// 00:00:00 became 00:44:30.
	checkKnown(t, load(t, "Africa/Monrovia"), "1972-01-06 23:58", "1972-01-07 00:50", "15:04:05", []known{
		{"59 23 * * *", "23:59:00"},
		{"0,44,46 0 * * *", "00:45:00, 00:46:00"},
		{"*/45 0 * * *", "00:45:00"},
	})
	start := time.Date(1972, 1, 7, 0, 44, 30, 0, time.UTC)
	for at := range parse(t, "@daily").Between(start.Add(-1), start.Add(29*time.Second), load(t, "Africa/Monrovia")) {
		t.Errorf("a fire after the end: %v", at)
	}
}
