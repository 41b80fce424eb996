package forecast

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/state/job"
)

// fires are the first n fires, as "id time".
func fires(jobs []job.Job, zone *time.Location, after time.Time, n int) (list []string) {
	for f := range Upcoming(jobs, zone, after) {
		if len(list) == n {
			break
		}
		list = append(list, f.Job.ID+" "+f.At.Format("02 15:04 MST"))
	}
	return list
}

func TestUpcomingReminders(t *testing.T) {
	paris := load(t, "Europe/Paris")
	now := clock(t, "2026-03-07 09:00:00", paris)
	off := func(j *job.Job) { j.Enabled = false }
	jobs := []job.Job{
		reminder("later", clock(t, "2026-03-08 12:00:00", time.UTC)), reminder("now", now), reminder("past", now.Add(-time.Hour)),
		reminder("soon", now.Add(time.Second)), reminder("off", now.Add(time.Hour), off), reminder("plain", now.Add(time.Hour), func(j *job.Job) { j.Plain = true }),
		routine(t, "daily", "0 10 * * *"), routine(t, "switched", "0 10 * * *", off),
		routine(t, "tokyo", "0 21 * * *", func(j *job.Job) { j.Timezone = "Asia/Tokyo" }),
	}
	// a reminder fires once, also one that is plain, in the configured zone; of one instant (13:00 CET is 21:00 JST) the directory
	// reminders comes first
	want := []string{
		"soon 07 09:00 CET", "plain 07 10:00 CET", "daily 07 10:00 CET", "tokyo 07 21:00 JST", "daily 08 10:00 CET", "later 08 13:00 CET", "tokyo 08 21:00 JST",
		"daily 09 10:00 CET",
	}
	got := fires(jobs, paris, now, len(want))
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if got := fires(jobs[:6], paris, now, 10); len(got) != 3 {
		t.Errorf("reminders alone have an end: %q", got)
	}
	if got := fires(nil, paris, now, 1); got != nil {
		t.Errorf("no jobs: %q", got)
	}
}

// Fires come in order, strictly after the instant; each waiting reminder once and at its own time.
func TestUpcomingProperties(t *testing.T) {
	zones := []*time.Location{load(t, "UTC"), load(t, "America/New_York"), load(t, "Australia/Lord_Howe")}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(rapid.Int64Range(1.7e9, 1.9e9).Draw(t, "now"), 0)
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		ahead := map[string]time.Time{}
		var jobs []job.Job
		for i, minutes := range rapid.SliceOfN(rapid.IntRange(-600, 600), 0, 8).Draw(t, "reminders") {
			j := reminder(fmt.Sprint("r", i), now.Add(time.Duration(minutes)*time.Minute))
			j.Enabled = rapid.Bool().Draw(t, "enabled")
			if jobs = append(jobs, j); j.Enabled && minutes > 0 {
				ahead[j.ID] = j.RunAt
			}
		}
		for i, line := range rapid.SliceOfN(rapid.SampledFrom([]string{"*/7 * * * *", "30 2 * * *", "@hourly"}), 0, 3).Draw(t, "routines") {
			jobs = append(jobs, routine(t, fmt.Sprint("c", i), line))
		}
		last, end := now, now.Add(11*time.Hour)
		for f := range Upcoming(jobs, zone, now) {
			if f.At.After(end) {
				break
			}
			if f.At.Before(last) || !f.At.After(now) || f.At.Location() != zone {
				t.Fatalf("%s at %s, after %s", f.Job.ID, f.At, last)
			}
			last = f.At
			if f.Job.Kind == job.Reminder {
				if at, waits := ahead[f.Job.ID]; !waits || !at.Equal(f.At) {
					t.Fatalf("%s at %s", f.Job.ID, f.At)
				}
				delete(ahead, f.Job.ID)
			}
		}
		if len(ahead) > 0 {
			t.Fatalf("never came: %v", ahead)
		}
	})
}
