package forecast

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/state/job"
)

func firstFires(zone *time.Location, now time.Time, n int, jobs ...job.Job) (fires []Fire) {
	for f := range Upcoming(jobs, zone, now) {
		if len(fires) == n {
			break
		}
		fires = append(fires, f)
	}
	return fires
}

// says is each fire as "job HH:MM cost pings notes".
func says(list []outlook) (lines []string) {
	for _, o := range list {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %.2f %d %s", o.Job.ID, o.At.Format("15:04"), o.Cost, o.Pings, strings.Join(o.Notes, "; "))))
	}
	return lines
}

func TestForecast(t *testing.T) {
	now := instant(t, "2026-03-02T08:00:00Z")
	muted := func(j *job.Job) { j.AllowPing = false }
	front := func(j *job.Job) { j.Background = false }
	bucket := Bucket{Capacity: 5, Available: 1.5, Every: 90 * time.Minute}
	const overlaps = "usually takes 1h30m; the next fire would be skipped"
	for name, c := range map[string]struct {
		jobs   []job.Job
		n      int
		past   map[string]Past
		bucket Bucket
		want   []string
	}{
		"cost": {
			[]job.Job{routine(t, "a", "0 9 * * *", muted), routine(t, "b", "30 9 * * *", muted)}, 3,
			map[string]Past{"a": {Runs: 2, Cost: 0.25}}, Bucket{},
			[]string{"a 09:00 0.25 0", "b 09:30 0.00 0", "a 09:00 0.25 0"},
		},
		"pings are taken, and come back": {
			[]job.Job{routine(t, "a", "0 9 * * *"), routine(t, "b", "0 */1 * * *", muted), routine(t, "c", "1,2 9 * * *")},
			7, nil, bucket,
			// 1.5 + 60/90 = 2.17; two are taken, then there are none until 90 minutes have passed
			[]string{"a 09:00 0.00 1", "b 09:00 0.00 1", "c 09:01 0.00 0", "c 09:02 0.00 0", "b 10:00 0.00 0", "b 11:00 0.00 1", "b 12:00 0.00 2"},
		},
		"never above the capacity": {
			[]job.Job{routine(t, "a", "0 9 * * 1", muted)}, 2, nil, bucket, []string{"a 09:00 0.00 2", "a 09:00 0.00 5"},
		},
		"a foreground job takes none": {
			[]job.Job{routine(t, "a", "0 9 * * *", front)}, 1, nil, Bucket{Capacity: 1, Available: 1}, []string{"a 09:00 0.00 1"},
		},
		"overlap": {
			[]job.Job{routine(t, "a", "0 * * * *", muted)}, 2, map[string]Past{"a": {Runs: 3, Time: 90 * time.Minute}}, Bucket{},
			[]string{"a 09:00 0.00 0 " + overlaps, "a 10:00 0.00 0 " + overlaps},
		},
		"overlap of some": {
			[]job.Job{routine(t, "a", "0 9,10,13 * * *", muted)}, 3, map[string]Past{"a": {Runs: 3, Time: 90 * time.Minute}}, Bucket{},
			[]string{"a 09:00 0.00 0 " + overlaps, "a 10:00 0.00 0", "a 13:00 0.00 0"},
		},
		"no overlap with what is not known": {
			[]job.Job{routine(t, "a", "* * * * *", muted)}, 1, map[string]Past{"a": {Time: time.Hour}}, Bucket{},
			[]string{"a 08:01 0.00 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := says(Forecast(firstFires(time.UTC, now, c.n, c.jobs...), c.past, c.bucket, now))
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestForecastHerds(t *testing.T) {
	now := instant(t, "2026-03-02T08:00:00Z")
	var jobs []job.Job
	for i := range 5 {
		jobs = append(jobs, routine(t, fmt.Sprintf("at9-%d", i), "0 9 * * *"))
	}
	for i := range 4 {
		jobs = append(jobs, routine(t, fmt.Sprintf("at10-%d", i), "0 10 * * *"))
	}
	var noted []string
	for _, o := range Forecast(firstFires(time.UTC, now, 14, jobs...), nil, Bucket{}, now) {
		for _, n := range o.Notes {
			noted = append(noted, o.At.Format("Mon 15:04 ")+n)
		}
	}
	if want := []string{"Mon 09:00 5 jobs in this minute", "Tue 09:00 5 jobs in this minute"}; !slices.Equal(noted, want) {
		t.Errorf("%q, want %q", noted, want)
	}
}

// TestForecastClockChange: the day of a change is told, and no other, in the zone of the job.
func TestForecastClockChange(t *testing.T) {
	newYork := load(t, "America/New_York")
	own := func(zone string) func(*job.Job) { return func(j *job.Job) { j.Timezone = zone } }
	for name, c := range map[string]struct {
		now, cron string
		change    func(*job.Job)
		want      []string // notes of the first four
	}{
		"spring":                  {"2026-03-06T12:00:00Z", "30 2 * * *", own(""), []string{"", "EDT", "", ""}},
		"spring, before the gap":  {"2026-03-06T12:00:00Z", "30 1 * * *", own(""), []string{"", "EDT", "", ""}},
		"spring, in the evening":  {"2026-03-06T12:00:00Z", "0 22 * * *", own(""), []string{"", "", "EDT", ""}},
		"autumn":                  {"2026-10-30T12:00:00Z", "0 9 * * *", own(""), []string{"", "", "EST", ""}},
		"of its own zone":         {"2026-03-06T12:00:00Z", "0 9 * * *", own("Europe/Paris"), []string{"", "", "", ""}},
		"of its own zone, change": {"2026-03-27T12:00:00Z", "0 9 * * *", own("Europe/Paris"), []string{"", "CEST", "", ""}},
		"at midnight":             {"2026-03-27T12:00:00Z", "30 0 * * *", own("Asia/Beirut"), []string{"", "EEST", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			now := instant(t, c.now)
			j := routine(t, "a", c.cron, c.change)
			for i, o := range Forecast(firstFires(newYork, now, 4, j), nil, Bucket{}, now) {
				want := ""
				if c.want[i] != "" {
					want = "the clock changes on that day, to " + c.want[i]
				}
				if got := strings.Join(o.Notes, "; "); got != want {
					t.Errorf("%s: %q, want %q", o.At, got, want)
				}
			}
		})
	}
}
