package run

import (
	"errors"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/spend"
)

// What the owner reads names the job as they know it, and says what is the matter.
func TestMessages(t *testing.T) {
	for got, want := range map[string]string{
		unreported("Market check"):                                                 "Market check ran but did not report what it did.",
		notify.NotRun("Market check", "gate is not there"):                         "Market check was not run: gate is not there",
		notify.BadFile("routines/a.md", "routines/a.md:3: corn: unknown key").Text: "A job file is invalid and cannot run until it is corrected (see `ollim check`): routines/a.md:3: corn: unknown key",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A run that a limit ended has the cause of the runs that the limit refuses, and a remedy that can be typed.
func TestLimitOfRun(t *testing.T) {
	until := time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC)
	for _, limit := range []*spend.Limit{
		{Key: "per-day", Used: 4.5, Reserved: 2, Allowed: 5, Until: until, Passing: true}, {Key: "per-month", Used: 99.9, Allowed: 100, Until: until},
		{Key: "runs-per-day", Used: 500, Allowed: 500, Until: until},
	} {
		want := notify.AtLimit(limit)
		got := notify.Failure(runlog.Record{Fault: string(notify.Limit), Subject: runlog.Subject{Name: "market"}, Error: (&overLimit{limit}).Error()}, "failed", "")
		if got.Key() != want.Key() || got.Name != want.Name || got.Remedy != want.Remedy || !got.Until.Equal(until) {
			t.Errorf("%s\n got %+v\nwant %+v", limit.Key, got, want)
		}
		if want := "market ended early: spending limit: " + limit.Key; got.Text[:min(len(want), len(got.Text))] != want {
			t.Errorf("%s: %q", limit.Key, got.Text)
		}
	}
	if c := notify.Failure(runlog.Record{Fault: string(notify.Limit), Subject: runlog.Subject{Name: "market"}, Error: errors.ErrUnsupported.Error()}, "failed", ""); c.Key() != "limit spend" || !c.Until.IsZero() {
		t.Errorf("of an unknown limit: %+v", c)
	}
}
