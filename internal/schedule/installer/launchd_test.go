package installer

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/state/job"
)

func TestLaunchd(t *testing.T) {
	files, left, err := Launchd(host(t), someJobs(t))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		all.WriteString("==> " + f.Name + "\n" + f.Text + "\n")
	}
	golden(t, "launchd-agents", all.String())
	const want = "both-days: both day fields must match, which not every cron supports\n" +
		"busy: launchd would need 792 calendar entries\n" +
		"tokyo: its zone Asia/Tokyo differs from that of launchd (Europe/Paris)"
	if got := ids(left); got != want {
		t.Errorf("left to the tick:\n%s\nwant:\n%s", got, want)
	}
}

// moments is the StartCalendarInterval of a file; ok reports whether it has one.
func momentsOf(t *testing.T, text string) (all []map[string]int, ok bool) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	var key string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all, ok
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		start, isStart := token.(xml.StartElement)
		if !isStart {
			continue
		}
		switch start.Name.Local {
		case "key":
			key = content(t, d, start)
			ok = ok || key == "StartCalendarInterval"
		case "dict":
			if ok {
				all = append(all, map[string]int{})
			}
		case "integer":
			n, err := strconv.Atoi(content(t, d, start))
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				all[len(all)-1][key] = n
			}
		}
	}
}

func content(t *testing.T, d *xml.Decoder, start xml.StartElement) (text string) {
	t.Helper()
	if err := d.DecodeElement(&text, &start); err != nil {
		t.Fatal(err)
	}
	return text
}

// What launchd is told is when the routine fires. A moment is a line of cron in which at most one day field counts.
func TestLaunchdMomentsMeanTheRoutine(t *testing.T) {
	for _, line := range []string{
		"0 9 * * 1-5", "30 4 1,15 * 5", "*/20 * * * *", "* * * * *", "15 7,19 * 1-3 *", "@weekly", "@yearly", "*/7 */5 * * *", "0 */6 1-7 */4 *", "5 0 */10 2 *",
		"0 12 29 2 *", "59 23 31 12 0", "0 0 * * */2", "7 * 13 * 5", "*/30,7 1,2 * * 0,6", "0 0 1-31 * 5", "0 0 31 2,4 5",
	} {
		h := host(t)
		h.Zone, h.Configured = time.UTC, time.UTC
		j := routine(t, "x", line)
		files, left, err := Launchd(h, []job.Job{j})
		if err != nil || len(left) > 0 {
			t.Errorf("%s: %v, left %s", line, err, ids(left))
			continue
		}
		all, ok := momentsOf(t, files[0].Text)
		if !ok || len(all) == 0 || len(all) > 250 {
			t.Errorf("%s: %d moments", line, len(all))
		}
		var lines []cron.Schedule
		for _, m := range all {
			lines = append(lines, asCron(t, m))
		}
		at := time.Date(2027, 12, 31, 23, 59, 0, 0, time.UTC)
		for range 40 {
			want, _ := j.Schedule.Next(at, time.UTC)
			var got time.Time
			for _, s := range lines {
				if next, ok := s.Next(at, time.UTC); ok && (got.IsZero() || next.Before(got)) {
					got = next
				}
			}
			if !got.Equal(want) {
				t.Fatalf("%s after %v: %v, want %v", line, at, got, want)
			}
			at = want
		}
	}
}

func asCron(t *testing.T, moment map[string]int) cron.Schedule {
	t.Helper()
	var fields []string
	for _, key := range []string{"Minute", "Hour", "Day", "Month", "Weekday"} {
		field := "*"
		if n, ok := moment[key]; ok {
			field = strconv.Itoa(n)
			delete(moment, key)
		}
		fields = append(fields, field)
	}
	s, err := cron.Parse(strings.Join(fields, " "))
	if err != nil || len(moment) > 0 || fields[2] != "*" && fields[4] != "*" {
		t.Fatal(fields, moment, err)
	}
	return s
}

// property lists hold what we meant, whatever paths are called.
func TestLaunchdReadBack(t *testing.T) {
	for _, dir := range hostilePaths {
		h := host(t)
		h.DataDir = dir
		files, _, err := Launchd(h, hard(t))
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, f := range files {
			var p struct {
				Keys  []string `xml:"dict>key"`
				First string   `xml:"dict>string"`
				Words []string `xml:"dict>array>string"`
			}
			if err := xml.Unmarshal([]byte(f.Text), &p); err != nil {
				t.Fatal(err)
			}
			if lower := strings.ToLower(f.Name); lower != f.Name || names[f.Name] || p.First+".plist" != f.Name || strings.ContainsAny(f.Name, "/ ") {
				t.Errorf("%s: label %s", f.Name, p.First)
			}
			names[f.Name] = true
			if len(p.Words) < 4 || p.Words[0] != h.Ollim || p.Words[2] != dir {
				t.Errorf("%s: %q", f.Name, p.Words)
			}
			if _, timed := momentsOf(t, f.Text); timed != (p.Words[3] == "fire") || slices.Contains(p.Keys, "StartInterval") == timed {
				t.Errorf("%s: %q", f.Name, p.Keys)
			}
		}
	}
}

func TestLaunchdRefuses(t *testing.T) {
	hosts := []Host{host(t), host(t)}
	hosts[0].Ollim, hosts[1].DataDir = "ollim", "/a\x01"
	for i, h := range hosts {
		if _, _, err := Launchd(h, nil); !errors.Is(err, ErrUnfit) {
			t.Errorf("%d: %v", i, err)
		}
	}
	every := "0-58 0-22 1-30 1-11 1-5" // not everything at once in memory
	if _, left, err := Launchd(host(t), []job.Job{routine(t, "x", every)}); err != nil || len(left) != 1 {
		t.Error(left, err)
	}
}
