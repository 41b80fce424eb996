package forecast

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/platform/paths"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/slot"
)

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// past reads "TIME CRON", "TIME off CRON" and "TIME gone", with " in ZONE" after the cron expression if it has one.
func past(t *testing.T, lines ...string) (history []slot.Schedule) {
	t.Helper()
	for _, line := range lines {
		at, rest, _ := strings.Cut(line, " ")
		s := slot.Schedule{At: instant(t, at), Job: "a", Name: "a"}
		rest, s.Zone, _ = strings.Cut(rest, " in ")
		s.Cron, s.Enabled = rest, rest != "gone"
		if expr, off := strings.CutPrefix(rest, "off "); off {
			s.Cron, s.Enabled = expr, false
		}
		if s.Cron == "gone" {
			s.Cron = ""
		}
		history = append(history, s)
	}
	return history
}

func TestExpected(t *testing.T) {
	newYork := load(t, "America/New_York")
	for name, c := range map[string]struct {
		history  []string
		from, to string
		want     []string
	}{
		"none": {nil, "2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z", nil},
		"the first instant is in, the last is not": {
			[]string{"2026-01-01T00:00:00Z 0 */6 * * *"},
			"2026-03-02T06:00:00-05:00", "2026-03-02T18:00:00-05:00",
			[]string{"2026-03-02T11:00:00Z", "2026-03-02T17:00:00Z"},
		},
		"not before it was noted": {
			[]string{"2026-03-02T12:00:00Z 0 * * * *"}, "2026-03-02T00:00:00Z", "2026-03-02T14:00:00Z",
			[]string{"2026-03-02T12:00:00Z", "2026-03-02T13:00:00Z"},
		},
		"noted within a minute": {
			[]string{"2026-03-02T12:00:00.5Z 0 * * * *"}, "2026-03-02T00:00:00Z", "2026-03-02T13:00:01Z",
			[]string{"2026-03-02T13:00:00Z"},
		},
		"changed": {
			[]string{"2026-01-01T00:00:00Z 0 * * * *", "2026-03-02T12:00:00Z 30 * * * *"},
			"2026-03-02T11:00:00Z", "2026-03-02T13:00:00Z",
			[]string{"2026-03-02T11:00:00Z", "2026-03-02T12:30:00Z"},
		},
		"switched off and on": {
			[]string{"2026-01-01T00:00:00Z 0 * * * *", "2026-03-02T11:30:00Z off 0 * * * *", "2026-03-02T13:30:00Z 0 * * * *"},
			"2026-03-02T11:00:00Z", "2026-03-02T15:00:00Z",
			[]string{"2026-03-02T11:00:00Z", "2026-03-02T14:00:00Z"},
		},
		"deleted and there again": {
			[]string{"2026-01-01T00:00:00Z 0 * * * *", "2026-03-02T11:30:00Z gone", "2026-03-02T13:30:00Z 0 * * * *"},
			"2026-03-02T11:00:00Z", "2026-03-02T15:00:00Z",
			[]string{"2026-03-02T11:00:00Z", "2026-03-02T14:00:00Z"},
		},
		"changed after the end": {
			[]string{"2026-01-01T00:00:00Z 0 0 * * *", "2026-05-01T00:00:00Z gone"},
			"2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z", []string{"2026-03-02T05:00:00Z"},
		},
		"a zone of its own, and another": {
			[]string{"2026-01-01T00:00:00Z 0 9 * * * in Asia/Tokyo", "2026-03-03T12:00:00Z 0 9 * * *"},
			"2026-03-02T12:00:00Z", "2026-03-04T00:00:00Z",
			[]string{"2026-03-03T00:00:00Z", "2026-03-03T14:00:00Z"},
		},
		"a zone that this machine does not know": {
			[]string{"2026-01-01T00:00:00Z 0 9 * * * in Mars/Olympus"},
			"2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z", []string{"2026-03-02T14:00:00Z"},
		},
		"an expression of another version": {
			[]string{"2026-01-01T00:00:00Z 0 9 L * *", "2026-03-02T00:00:00Z 0 9 * * *"},
			"2026-03-01T00:00:00Z", "2026-03-03T00:00:00Z", []string{"2026-03-02T14:00:00Z"},
		},
		"into the gap of spring": {
			[]string{"2026-01-01T00:00:00Z 30 2 * * *"}, "2026-03-07T12:00:00Z", "2026-03-09T12:00:00Z",
			[]string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"},
		},
		"into the overlap of autumn": {
			[]string{"2026-01-01T00:00:00Z 30 1 * * *"}, "2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z",
			[]string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"},
		},
		"wild in the overlap of autumn": {
			[]string{"2026-01-01T00:00:00Z */30 * * * *"}, "2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z",
			[]string{"2026-11-01T05:00:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:30:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			history := past(t, c.history...)
			from, to := instant(t, c.from), instant(t, c.to)
			var got []string
			for at := range Expected(history, newYork, from, to) {
				got = append(got, at.UTC().Format(time.RFC3339))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			latest, ok := Latest(history, newYork, from, to)
			if ok != (len(c.want) > 0) || ok && latest.UTC().Format(time.RFC3339) != c.want[len(c.want)-1] {
				t.Errorf("the latest is %s, %v", latest, ok)
			}
		})
	}
}

// TestExpectedIsInForce: every slot is one of the schedule that was in force at its time, none is omitted, they ascend, and the
// latest is the last.
func TestExpectedIsInForce(t *testing.T) {
	start := time.Date(2026, 3, 7, 0, 0, 0, 0, time.UTC)
	zone := load(t, "America/New_York")
	rapid.Check(t, func(t *rapid.T) {
		expressions := []string{"* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0 0 * * 0", "0 0 31 2 *", ""}
		var history []slot.Schedule
		at := start
		for range rapid.IntRange(0, 4).Draw(t, "schedules") {
			at = at.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "minutes")) * time.Minute)
			history = append(history, slot.Schedule{
				At: at, Cron: rapid.SampledFrom(expressions).Draw(t, "cron"), Enabled: rapid.Bool().Draw(t, "enabled"),
				Zone: rapid.SampledFrom([]string{"", "Asia/Tokyo"}).Draw(t, "zone"),
			})
		}
		from := start.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(t, "from")) * time.Second)
		to := from.Add(time.Duration(rapid.IntRange(0, 200_000).Draw(t, "length")) * time.Second)
		var want []time.Time
		for minute := from.Truncate(time.Minute); minute.Before(to); minute = minute.Add(time.Minute) {
			i := len(history) - 1
			for i >= 0 && history[i].At.After(minute) {
				i--
			}
			if minute.Before(from) || i < 0 || !history[i].Enabled {
				continue
			}
			expr, err := cron.Parse(history[i].Cron)
			if err != nil {
				continue
			}
			if fire, ok := expr.Prev(minute, history[i].In(zone)); ok && fire.Equal(minute) {
				want = append(want, minute)
			}
		}
		got := slices.Collect(Expected(history, zone, from, to))
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("%v, want %v", got, want)
		}
		latest, ok := Latest(history, zone, from, to)
		if ok != (len(want) > 0) || ok && !latest.Equal(want[len(want)-1]) {
			t.Fatalf("the latest is %s, %v, want %v", latest, ok, want)
		}
	})
}

// TestAudit: each way in which a slot can have been answered, or not.
func TestAudit(t *testing.T) {
	dir := paths.Dir(t.TempDir())
	start := instant(t, "2026-03-02T00:00:00Z")
	disk := store.Disk{Now: func() time.Time { return start }, Warn: func(m string) { t.Error(m) }}
	book := slot.Book{Home: dir, Disk: disk, Zone: time.UTC}
	if _, err := book.Note(context.Background(), []slot.Schedule{{Job: "a", Name: "first", Cron: "@hourly", Enabled: true}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := book.Note(context.Background(), []slot.Schedule{{Job: "b", Name: "b", Cron: "0 1 * * *", Enabled: true}}, nil); err != nil {
		t.Fatal(err)
	}
	outcomes := []runlog.Outcome{
		runlog.OK, runlog.Failed, runlog.Timeout, runlog.Skipped, runlog.Gated, runlog.Refused, runlog.Paused, runlog.Unreported, runlog.Interrupted, slot.Missed,
	}
	hour := func(i int) time.Time { return start.Add(time.Duration(i) * time.Hour) }
	var want []string
	for i, o := range outcomes {
		if err := book.Claim(slot.Claim{Job: "a", Slot: hour(i), Run: fmt.Sprintf("r%d", i), Outcome: string(o)}); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("a first %02d %s r%d", i, o, i))
		if i == 1 {
			want = append(want, "b b 01 unaccounted ")
		}
	}
	self := process.Self()
	for i, c := range []struct {
		claim slot.Claim
		want  string
	}{
		{slot.Claim{Run: "looked up"}, "timeout"},
		{slot.Claim{Run: "alive", PID: self.PID, PIDStart: self.Start}, "running"},
		{slot.Claim{}, "unaccounted"},
	} {
		n := len(outcomes) + i
		c.claim.Job, c.claim.Slot = "a", hour(n)
		if err := book.Claim(c.claim); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("a first %02d %s %s", n, c.want, c.claim.Run))
	}
	want = append(want, fmt.Sprintf("a first %02d unaccounted ", len(outcomes)+3))
	look := func(c slot.Claim) string {
		switch {
		case c.Run == "looked up":
			return "timeout"
		case c.Alive():
			return ""
		}
		return Unaccounted
	}
	answers, err := Audit(book, start, hour(len(outcomes)+4), "", look)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range answers {
		got = append(got, fmt.Sprintf("%s %s %s %s %s", a.Job, a.Name, a.Slot.Format("15"), a.Outcome, a.Run))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAuditOfNothing(t *testing.T) {
	book := slot.Book{Home: paths.Dir(t.TempDir()), Zone: time.UTC}
	answers, err := Audit(book, time.Time{}, time.Now(), "", nil)
	if err != nil || len(answers) != 0 {
		t.Errorf("%v, %v", answers, err)
	}
}
