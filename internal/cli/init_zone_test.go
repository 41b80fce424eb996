package setup

import "testing"

func TestZoneOf(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"Berlin": "Europe/Berlin", "berlin": "Europe/Berlin", "new york": "America/New_York", "Port-au-Prince": "America/Port-au-Prince",
		"Europe/Berlin": "Europe/Berlin", "UTC": "UTC", "": "", "nowhere": "nowhere", "Mars/Phobos": "Mars/Phobos", "../UTC": "../UTC",
		"Istanbul":  "Istanbul",  // of Asia and Europe
		"Argentina": "Argentina", // a directory
	} {
		if got := ZoneOf(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}
