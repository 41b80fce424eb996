package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTimerOfARemovedRoutine: a timer whose routine was removed does nothing, and says nothing.
func TestTimerOfARemovedRoutine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("routine", "add", "gone", "--cron", "5 10 * * *", "--background", "Look around.")
	w.must("routine", "add", "other", "--cron", "5 11 * * *", "--background", "Look around.")
	w.must("tick")
	if err := os.Remove(filepath.Join(w.dir, "routines/gone.md")); err != nil {
		t.Fatal(err)
	}
	w.pass(5 * time.Minute)
	if r := w.run("fire", "--scheduled", "gone"); r.status != 0 || r.out+r.errOut != "" {
		t.Errorf("fire --scheduled: exit status %d, %q %q", r.status, r.out, r.errOut)
	}
	if runs := w.runs(); len(runs) != 0 {
		t.Errorf("runs: %v", runs)
	}
	if r := w.run("fire", "gone"); r.status != 66 {
		t.Errorf("fire: exit status %d, %q", r.status, r.errOut)
	}
}

// TestUnreadableScheduleHistory: what cannot be read of the past is not taken for a past in which nothing was to run.
func TestUnreadableScheduleHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("routine", "add", "daily", "--cron", "5 10 * * *", "--background", "Look around.")
	w.must("tick")
	path := filepath.Join(w.dir, "state/schedules.jsonl")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	w.pass(2 * time.Hour)
	for _, verb := range [][]string{{"schedule", "audit"}, {"tick"}, {"tick", "--dry-run"}} {
		if r := w.run(verb...); r.status == 0 || !strings.Contains(r.errOut, "schedules.jsonl") {
			t.Errorf("%q: exit status %d, %q", verb, r.status, r.errOut)
		}
	}
}
