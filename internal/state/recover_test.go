package state_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

// TestRecover: what a power failure has undone is made again in the first command after a boot, and only then.
func TestRecover(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	disk := store.Disk{Now: func() time.Time { return now }, Warn: func(m string) { t.Error(m) }}
	s := state.Of(paths.Dir(t.TempDir()), disk, time.UTC)
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	const id = "20260302T090000.000Z-aaaaaa"
	must(s.Recover())
	must(s.Slots.Claim(slot.Claim{Job: "j", Slot: now, Run: id}))
	r, err := s.Runs.Open(runlog.Record{ID: id, Subject: runlog.Subject{Kind: "routine", Job: "j"}, Started: now, Scheduled: &now})
	must(err, r.Begin(t.Context()), r.Save())
	lose := func() { must(os.RemoveAll(s.Runs.Home.Run(id)), os.RemoveAll(s.Runs.Home.Slots())) }
	found := func(outcome runlog.Outcome) {
		t.Helper()
		record, err := s.Runs.Load(id)
		c, claimErr := s.Slots.Load("j", now)
		must(err, claimErr)
		if record.Outcome != outcome || c.Run != id || c.Outcome != string(outcome) {
			t.Errorf("%+v, %+v", record, c)
		}
	}
	path := s.Runs.Home.State("boots")
	lose()
	must(os.WriteFile(path, []byte(strings.Repeat("another-boot\n", 20)), 0o600), s.Recover())
	found("")
	must(r.Finish(runlog.OK, ""))
	lose()
	must(s.Recover())
	if _, err := s.Runs.Load(id); err == nil {
		t.Error("it was made again in the same boot")
	}
	must(os.Remove(path), s.Recover())
	found(runlog.OK)
	text, err := os.ReadFile(path)
	if must(err); strings.TrimSpace(string(text)) != process.Boot() {
		t.Errorf("%q", text)
	}
}
