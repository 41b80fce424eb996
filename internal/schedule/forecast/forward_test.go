package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/state/job"
	"pgregory.net/rapid"
)

// reporter is what *testing.T, *testing.B and *rapid.T have in common.
type reporter interface {
	Helper()
	Fatal(args ...any)
}

func load(t reporter, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func clock(t reporter, s string, zone *time.Location) time.Time {
	t.Helper()
	at, err := time.ParseInLocation("2006-01-02 15:04:05", s, zone)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// routine is a background routine without a description.
func routine(t reporter, id, line string, changes ...func(*job.Job)) job.Job {
	t.Helper()
	j := job.New(job.Routine)
	s, err := cron.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	j.ID, j.Path, j.Cron, j.Schedule, j.Background, j.Body = id, "/data/routines/"+id+".md", line, s, true, "Do "+id+"."
	for _, change := range changes {
		change(&j)
	}
	return j
}

func reminder(id string, at time.Time, changes ...func(*job.Job)) job.Job {
	j := job.New(job.Reminder)
	j.ID, j.Path, j.RunAt, j.Background, j.Body = id, "/data/reminders/"+id+".md", at, true, "Recall "+id+"."
	for _, change := range changes {
		change(&j)
	}
	return j
}

func relative(path string) string { return strings.TrimPrefix(path, "/data/") }

// lines are a forward schedule in the manner of behaviour 3.3.
func lines(f Forward) []string {
	out := []string{fmt.Sprintf("next %dh", f.Hours)}
	for _, e := range f.Entries {
		s := e.At.Format("Mon 15:04 MST: ") + e.Label
		if e.Silent {
			s += " (silent)"
		}
		if e.Description != "" {
			s += fmt.Sprintf(" — %q", e.Description)
		}
		s += " (" + e.Path + ")"
		if e.Tag != "" {
			s += " [" + string(e.Tag) + "]"
		}
		if e.More > 0 {
			s += fmt.Sprintf(" +%d until %s", e.More, e.Last.Format("15:04"))
		}
		out = append(out, s)
	}
	return out
}

func compare(t *testing.T, got Forward, want ...string) {
	t.Helper()
	if got := lines(got); !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	if got.Refills != 0 {
		t.Errorf("%d refills: they are the caller's", got.Refills)
	}
}

// 4 March 2026 is a Wednesday.
const noon = "2026-03-04 12:00:00"

func TestWhoIsListed(t *testing.T) {
	now := clock(t, noon, time.UTC)
	soon := now.Add(time.Hour)
	hook := job.New(job.Webhook)
	hook.ID, hook.Background, hook.RunAt = "hook", true, soon
	jobs := []job.Job{
		routine(t, "described", "0 13 * * *", func(j *job.Job) { j.Description = " Morning\n  review " }),
		routine(t, "silent", "5 13 * * *", func(j *job.Job) { j.AllowPing = false }),
		reminder("rem", soon.Add(10*time.Minute)),
		reminder("named", soon.Add(15*time.Minute), func(j *job.Job) { j.Description = "Call Bob" }),
		reminder("chain", soon.Add(20*time.Minute), func(j *job.Job) { j.MaxChain, j.ChainDepth = 3, 1 }),
		routine(t, "off", "0 13 * * *", func(j *job.Job) { j.Enabled = false }),
		routine(t, "fg", "0 13 * * *", func(j *job.Job) { j.Background = false }),
		reminder("off2", soon, func(j *job.Job) { j.Enabled = false }),
		reminder("fg2", soon, func(j *job.Job) { j.Background = false }),
		reminder("plain", soon, func(j *job.Job) { j.Plain = true }),
		reminder("timeless", time.Time{}),
		hook,
	}
	compare(t, Around(jobs, time.UTC, now, "", relative),
		"next 1h",
		"Wed 13:00 UTC: Morning review (routines/described.md)",
		`Wed 13:05 UTC: Routine (silent) — "Do silent." (routines/silent.md)`,
		`Wed 13:10 UTC: Reminder — "Recall rem." (reminders/rem.md)`,
		`Wed 13:15 UTC: Reminder — "Call Bob" (reminders/named.md)`,
		`Wed 13:20 UTC: Chain reminder (2/4) — "Recall chain." (reminders/chain.md)`,
	)
	compare(t, Around(nil, time.UTC, now, "x", relative), "next 0h")
	compare(t, Around(jobs, time.UTC, now, "hook", relative), lines(Around(jobs, time.UTC, now, "", relative))...)
}

func TestRecent(t *testing.T) {
	now := clock(t, noon, time.UTC)
	jobs := []job.Job{
		routine(t, "edge", "45 11 4 3 *"),
		routine(t, "older", "44 11 4 3 *"),
		routine(t, "now", "0 12 4 3 *"),
		reminder("overdue", now.Add(-time.Minute)),
		reminder("forgotten", now.Add(-15*time.Minute-1)),
		routine(t, "off", "59 11 4 3 *", func(j *job.Job) { j.Enabled = false }),
		routine(t, "often", "*/4 * * * *"),
	}
	recent := []string{
		"next 3h",
		`Wed 11:45 UTC: Routine — "Do edge." (routines/edge.md) [just fired]`,
		`Wed 11:59 UTC: Reminder — "Recall overdue." (reminders/overdue.md) [just fired]`,
		`Wed 12:00 UTC: Routine — "Do now." (routines/now.md) [just fired]`,
		`Wed 12:00 UTC: Routine — "Do often." (routines/often.md) [just fired]`,
		`Wed 12:04 UTC: Routine — "Do often." (routines/often.md)`,
		`Wed 12:08 UTC: Routine — "Do often." (routines/often.md)`,
		`Wed 12:12 UTC: Routine — "Do often." (routines/often.md) +42 until 15:00`,
	}
	compare(t, Around(jobs, time.UTC, now, "", relative), recent...)
	compare(t, Around(jobs, time.UTC, now.Add(59*time.Second), "often", relative),
		"next 3h", recent[2], recent[3], strings.Replace(recent[4], "just fired", "this task", 1), recent[5], recent[6], recent[7])
}

// The fire that is in progress is listed even if nothing was scheduled now.
func TestThisTask(t *testing.T) {
	now := clock(t, "2026-03-04 12:20:30", time.UTC)
	jobs := []job.Job{
		routine(t, "hourly", "0 * * * *"),
		routine(t, "off", "0 13 * * *", func(j *job.Job) { j.Enabled = false }),
		reminder("early", now.Add(time.Hour)),
		reminder("late", now.Add(-time.Hour)),
		routine(t, "fg", "20 * * * *", func(j *job.Job) { j.Background = false }),
	}
	ahead := []string{
		`Wed 13:00 UTC: Routine — "Do hourly." (routines/hourly.md)`,
		`Wed 13:20 UTC: Reminder — "Recall early." (reminders/early.md)`,
		`Wed 14:00 UTC: Routine — "Do hourly." (routines/hourly.md)`,
		`Wed 15:00 UTC: Routine — "Do hourly." (routines/hourly.md)`,
	}
	for current, want := range map[string][]string{
		"":       slices.Concat([]string{"next 3h"}, ahead),
		"fg":     slices.Concat([]string{"next 3h"}, ahead),
		"absent": slices.Concat([]string{"next 3h"}, ahead),
		"hourly": slices.Concat([]string{"next 3h", `Wed 12:20 UTC: Routine — "Do hourly." (routines/hourly.md) [this task]`}, ahead),
		"off":    slices.Concat([]string{"next 3h", `Wed 12:20 UTC: Routine — "Do off." (routines/off.md) [this task]`}, ahead),
		"late":   slices.Concat([]string{"next 3h", `Wed 12:20 UTC: Reminder — "Recall late." (reminders/late.md) [this task]`}, ahead),
		"early": {"next 3h", `Wed 12:20 UTC: Reminder — "Recall early." (reminders/early.md) [this task]`,
			ahead[0], ahead[2], ahead[3]},
	} {
		t.Run(current, func(t *testing.T) {
			compare(t, Around(jobs, time.UTC, now, current, relative), want...)
		})
	}
}

func TestWindow(t *testing.T) {
	now := clock(t, noon, time.UTC)
	at := func(offsets ...time.Duration) (jobs []job.Job) {
		for i, d := range offsets {
			jobs = append(jobs, reminder(fmt.Sprint(i), now.Add(d)))
		}
		return jobs
	}
	const h, m = time.Hour, time.Minute
	for _, c := range []struct {
		jobs          []job.Job
		entries, hour int
	}{
		{at(), 0, 0},
		{at(-m, 12*h+1), 1, 0},
		{at(m), 1, 1},
		{at(29 * m), 1, 1},
		{at(89 * m), 1, 1},
		{at(90 * m), 1, 2},
		{at(h, 2*h, 3*h, 3*h+1), 3, 3},
		{at(m, m, m, 3*h, 4*h), 4, 3},
		{at(h, 2*h, 5*h, 6*h), 3, 5},
		{at(h, 2*h, 5*h-20*m, 5*h-10*m, 5*h, 5*h+1), 5, 5}, // whatever is in the hours that the heading states
		{at(h, 2*h, 5*h+10*m, 5*h+20*m), 3, 5},
		{at(h, 5*h, 5*h, 5*h, 6*h), 4, 5}, // whatever is at the same time as the third
		{at(12*h, 12*h+1), 1, 12},
		{at(4*h, 11*h+20*m), 2, 11},
		{at(-m, -2*m, -3*m, 11*h, 12*h, 13*h), 5, 12}, // what is over does not count
	} {
		f := Around(c.jobs, time.UTC, now, "", relative)
		if len(f.Entries) != c.entries || f.Hours != c.hour {
			t.Errorf("%d entries, %d hours, want %d, %d: %v", len(f.Entries), f.Hours, c.entries, c.hour, lines(f))
		}
	}
}

func TestBounds(t *testing.T) {
	now := clock(t, "2026-03-04 12:00:30", time.UTC)
	jobs := []job.Job{routine(t, "minutely", "* * * * *"), routine(t, "evening", "0 18 * * *")}
	compare(t, Around(jobs, time.UTC, now, "", relative), "next 3h",
		`Wed 12:00 UTC: Routine — "Do minutely." (routines/minutely.md) [just fired]`,
		`Wed 12:01 UTC: Routine — "Do minutely." (routines/minutely.md)`,
		`Wed 12:02 UTC: Routine — "Do minutely." (routines/minutely.md)`,
		`Wed 12:03 UTC: Routine — "Do minutely." (routines/minutely.md) +177 until 15:00`)
	jobs = nil
	for i := range 60 {
		jobs = append(jobs, routine(t, fmt.Sprintf("r%02d", i), "*/15 * * * *"), reminder(fmt.Sprintf("m%02d", i), now.Add(-time.Minute)))
	}
	f := Around(jobs, time.UTC, now, "m00", relative)
	if n := len(f.Entries); n != 51 || f.Entries[0].Tag != thisTask || f.Entries[10].Tag != justFired || f.Entries[11].Tag != "" {
		t.Errorf("%d entries: %v", n, lines(f))
	}
	if last := f.Entries[50]; last.Path != "routines/r39.md" || f.Hours != 1 {
		t.Error(last, f.Hours)
	}
	if f.Left != 60*4-40 { // fires in the next hour, of which 40 are listed
		t.Errorf("%d are left out", f.Left)
	}
}

// A job may have a zone of its own; the list is in one zone. In Berlin clocks go from 02:00 to 03:00 on 29 March 2026 and from
// 03:00 back to 02:00 on 25 October, both at 01:00 UTC, which is 10:00 in Tokyo.
func TestZones(t *testing.T) {
	berlin := load(t, "Europe/Berlin")
	inTokyo := func(j *job.Job) { j.Timezone = "Asia/Tokyo" }
	jobs := []job.Job{routine(t, "home", "30 2 * * *"), routine(t, "tokyo", "0 10 * * *", inTokyo), routine(t, "hourly", "0 */1 * * *")}
	compare(t, Around(jobs, berlin, clock(t, "2026-03-29 01:30:00", berlin), "", relative), "next 3h",
		`Sun 03:00 CEST: Routine — "Do home." (routines/home.md)`,
		`Sun 03:00 CEST: Routine — "Do hourly." (routines/hourly.md)`,
		`Sun 03:00 CEST: Routine — "Do tokyo." (routines/tokyo.md)`,
		`Sun 04:00 CEST: Routine — "Do hourly." (routines/hourly.md)`,
		`Sun 05:00 CEST: Routine — "Do hourly." (routines/hourly.md)`)
	compare(t, Around(jobs, berlin, clock(t, "2026-10-25 01:50:00", berlin).UTC(), "", relative), "next 2h",
		`Sun 02:00 CEST: Routine — "Do hourly." (routines/hourly.md)`,
		`Sun 02:30 CEST: Routine — "Do home." (routines/home.md)`,
		`Sun 02:00 CET: Routine — "Do hourly." (routines/hourly.md)`,
		`Sun 02:00 CET: Routine — "Do tokyo." (routines/tokyo.md)`,
		`Sun 03:00 CET: Routine — "Do hourly." (routines/hourly.md)`)
}

func TestWords(t *testing.T) {
	now := clock(t, noon, time.UTC)
	sixty := strings.Repeat("é", 60)
	for body, want := range map[string]string{
		"":                                    "",
		"# Title\r\n\r\n\ttext":               "# Title text",
		sixty:                                 sixty,
		sixty + "\n \n":                       sixty,
		sixty + "x":                           sixty + "...",
		sixty[:118] + " and":                  sixty[:118] + "...",
		sixty + " x":                          sixty + "...",
		"a\x1b[31m\u202eb\u2028c\u0085d\x00e": "a[31mb c de",
	} {
		for _, j := range []job.Job{
			routine(t, "r", "30 12 4 3 *", func(j *job.Job) { j.Body = body }),
			reminder("r", now.Add(time.Hour), func(j *job.Job) { j.Body = body }),
			reminder("r", now.Add(time.Hour), func(j *job.Job) { j.Body, j.Description = "other", body }),
		} {
			f := Around([]job.Job{j}, time.UTC, now, "", func(string) string { return "a  b\n(c).md" })
			if body == "" && j.Body != "" {
				want = "other"
			}
			if e := f.Entries[0]; e.Description != want || e.Path != "a  b(c).md" {
				t.Errorf("%q: %+v, want %q", body, e, want)
			}
		}
		if body == "" {
			continue
		}
		j := routine(t, "r", "30 12 4 3 *", func(j *job.Job) { j.Description = body })
		if e := Around([]job.Job{j}, time.UTC, now, "", relative).Entries[0]; e.Label != want || e.Description != "" {
			t.Errorf("%q: %+v, want %q", body, e, want)
		}
	}
}

func TestAroundProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := load(t, rapid.SampledFrom([]string{"UTC", "America/New_York", "Australia/Lord_Howe"}).Draw(t, "zone"))
		now := clock(t, "2026-03-07 12:00:00", zone).Add(time.Duration(rapid.IntRange(0, 300*24*3600).Draw(t, "seconds")) * time.Second)
		var jobs []job.Job
		for i := range rapid.IntRange(0, 12).Draw(t, "jobs") {
			id := fmt.Sprintf("j%02d", i)
			if rapid.Bool().Draw(t, "reminder") {
				jobs = append(jobs, reminder(id, now.Add(time.Duration(rapid.IntRange(-30, 15*60).Draw(t, "minutes"))*time.Minute)))
				continue
			}
			lines := []string{"* * * * *", "*/20 * * * *", "0 */2 * * *", "30 2 * * *", "15 1,9,17 * * *", "0 12 * * 6", "0 0 1 1 *"}
			jobs = append(jobs, routine(t, id, rapid.SampledFrom(lines).Draw(t, "cron"), func(j *job.Job) {
				j.Timezone = rapid.SampledFrom([]string{"", "Asia/Kathmandu"}).Draw(t, "own zone")
				j.Enabled = rapid.IntRange(0, 4).Draw(t, "enabled") > 0
			}))
		}
		current := rapid.SampledFrom([]string{"", "j00", "j03"}).Draw(t, "current")
		f := Around(jobs, zone, now, current, relative)
		checkForward(t, f, jobs, zone, now, current)
	})
}

// checkForward compares the list with all fires, found the slow way.
func checkForward(t *rapid.T, f Forward, jobs []job.Job, zone *time.Location, now time.Time, current string) {
	var fires []string // within twelve hours
	byFire := map[string]time.Time{}
	for fire := range Upcoming(jobs, zone, now) {
		if fire.At.Sub(now) > 12*time.Hour {
			break
		}
		if fire.Job.ID == current && fire.Job.Kind == job.Reminder {
			continue
		}
		key := fmt.Sprint(fire.At.Unix(), relative(fire.Job.Path))
		fires, byFire[key] = append(fires, key), fire.At
	}
	listed := map[string]bool{}
	this, rows := 0, 0
	for i, e := range f.Entries {
		if i > 0 && e.At.Before(f.Entries[i-1].At) || e.At.Location() != zone || e.At.Before(now.Add(-15*time.Minute)) {
			t.Fatalf("order: %v", lines(f))
		}
		if e.Tag == thisTask {
			this++
		}
		if e.At.After(now) == (e.Tag != "") {
			t.Fatalf("tag: %v", lines(f))
		}
		if !e.At.After(now) {
			continue
		}
		rows++
		listed[fmt.Sprint(e.At.Unix(), e.Path)] = true
		more := 0
		for key, at := range byFire {
			if strings.HasSuffix(key, e.Path) && at.After(e.At) && !at.After(e.Last) {
				listed[key] = true
				more++
			}
		}
		if more != e.More {
			t.Fatalf("%s has %d more until %v, the entry says %d", e.Path, more, e.Last, e.More)
		}
	}
	missing := 0
	for i, key := range fires {
		inRange := byFire[key].Sub(now) <= time.Duration(f.Hours)*time.Hour
		if (inRange || i < 3) && !listed[key] {
			missing++
		}
	}
	known := slices.ContainsFunc(jobs, func(j job.Job) bool { return j.ID == current })
	if missing > f.Left || rows > 40 || (this == 1) != known || this > 1 {
		t.Fatalf("at %v: %d of %v are missing: %v", now, missing, fires, lines(f))
	}
	if (f.Hours == 0) != (len(fires) == 0) || f.Left == 0 && len(fires) > 0 && rows < 40 && f.Hours != max(1, int(f.Last.Sub(now).Hours()+0.5)) {
		t.Fatalf("at %v: %d hours, last %v: %v", now, f.Hours, f.Last, lines(f))
	}
}

func BenchmarkAround(b *testing.B) {
	zone := load(b, "America/New_York")
	now := clock(b, noon, zone)
	lines := []string{"* * * * *", "0 9 * * 1-5", "*/20 * * * *", "0 0 1 1 *", "30 4 1,15 * 5", "15 13 * * *"}
	zones := []string{"", "Europe/London", "Asia/Tokyo"}
	var jobs []job.Job
	for i := range 10_000 {
		jobs = append(jobs, routine(b, fmt.Sprint(i), lines[i%len(lines)], func(j *job.Job) { j.Timezone = zones[i/7%len(zones)] }))
	}
	b.ReportAllocs()
	for b.Loop() {
		if f := Around(jobs, zone, now, "7", relative); len(f.Entries) == 0 {
			b.Fatal("nothing")
		}
	}
}
