package run

import (
	"testing"
	"time"
)

func TestLate(t *testing.T) {
	now := time.Date(2026, 2, 24, 12, 0, 0, 0, time.UTC)
	if late(nil, now) {
		t.Error("a run that was not scheduled is late")
	}
	for by, want := range map[time.Duration]bool{2 * time.Minute: false, 2*time.Minute + 1: true, 0: false, -time.Hour: false, 24 * time.Hour: true} {
		if at := now.Add(-by); late(&at, now) != want {
			t.Errorf("%v after its time: %v", by, !want)
		}
	}
}
