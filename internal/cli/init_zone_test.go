package cli

import (
	"testing"

	"github.com/ollim/ollim/internal/app/setup"
)

// TestZoneOf: the name of a city stands for its zone. The test is here because a test program of the package setup alone takes longer to
// link than all tests of a small package.
func TestZoneOf(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"Berlin": "Europe/Berlin", "berlin": "Europe/Berlin", "new york": "America/New_York", "Port-au-Prince": "America/Port-au-Prince",
		"Europe/Berlin": "Europe/Berlin", "UTC": "UTC", "": "", "nowhere": "nowhere", "Mars/Phobos": "Mars/Phobos", "../UTC": "../UTC",
		"Istanbul":  "Istanbul",  // of Asia and Europe
		"Argentina": "Argentina", // a directory
	} {
		if got := setup.ZoneOf(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}
