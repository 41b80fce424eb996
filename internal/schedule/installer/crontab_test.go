package installer

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/testkit"
)

func TestCrontab(t *testing.T) {
	block, left, err := Crontab(host(t), someJobs(t))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "crontab", block)
	const want = "both-days: both day fields must match, which not every cron supports\n" +
		"tokyo: its zone Asia/Tokyo differs from that of cron (Europe/Paris)"
	if got := ids(left); got != want {
		t.Errorf("left to the tick:\n%s\nwant:\n%s", got, want)
	}
}

func TestCrontabOfTheTickAlone(t *testing.T) {
	h := host(t)
	h.TickOnly, h.Config = true, "/etc/ollim.yaml"
	block, left, err := Crontab(h, someJobs(t))
	if err != nil || len(left) != 0 {
		t.Fatal(left, err)
	}
	golden(t, "crontab-tick", block)
}

// cron reads its lines in its own zone, whatever ours is.
func TestCrontabHasOnlyTimesOfItsOwnZone(t *testing.T) {
	jobs := []job.Job{routine(t, "plain", "0 9 * * *"), routine(t, "own", "0 9 * * *", in("Asia/Tokyo"))}
	for _, c := range []struct{ scheduler, configured, written string }{
		{"Europe/Paris", "Europe/Paris", "plain"},
		{"Asia/Tokyo", "Europe/Paris", "own"},
		{"Asia/Tokyo", "Asia/Tokyo", "own plain"},
		{"UTC", "Europe/Paris", ""},
		{"UTC", "Etc/UTC", "plain"},
		{"Etc/UTC", "UTC", "plain"},
	} {
		h := host(t)
		h.Zone, h.Configured = zone(t, c.scheduler), zone(t, c.configured)
		block, left, err := Crontab(h, jobs)
		if err != nil {
			t.Fatal(err)
		}
		var written []string
		for line := range strings.Lines(block) {
			if _, id, found := strings.Cut(line, " -- "); found {
				written = append(written, strings.TrimSpace(id))
			}
		}
		if got := strings.Join(written, " "); got != c.written || len(written)+len(left) != len(jobs) {
			t.Errorf("%+v: wrote %q, left %d", c, got, len(left))
		}
	}
}

func TestCrontabRefusesWhatAShellWouldRead(t *testing.T) {
	paths := append([]string{"ollim", "", "./ollim", "/a\nb", "/a\tb", "/a%b", "/a;b", "/~/x", "/a\x00", "/é"}, hostilePaths...)
	for _, path := range paths {
		hosts := []Host{host(t), host(t), host(t)}
		hosts[0].Ollim, hosts[1].DataDir, hosts[2].Config = path, path, path
		for i, h := range hosts {
			if i == 2 && path == "" {
				continue // the directory's own
			}
			if block, _, err := Crontab(h, nil); !errors.Is(err, ErrUnfit) {
				t.Errorf("%q as path %d: %v\n%s", path, i, err, block)
			}
		}
	}
	for _, id := range []string{"a b", "", "-x", ".x", "a\nb", "a%", "$a", "a/b", strings.Repeat("a", 65)} {
		if block, _, err := Crontab(host(t), []job.Job{routine(t, id, "0 9 * * *")}); !errors.Is(err, ErrUnfit) {
			t.Errorf("id %q: %v\n%s", id, err, block)
		}
	}
}

func TestCrontabLinesStayShort(t *testing.T) {
	jobs := []job.Job{
		routine(t, "short", "0 9 * * *"),
		routine(t, "long", "1-59 1-23 1-30 1-11 1-5"),
	}
	h := host(t)
	h.DataDir = "/" + strings.Repeat("d", 600)
	block, left, err := Crontab(h, jobs)
	if err != nil || ids(left) != "long: its line would be too long for a crontab" || !strings.Contains(block, " -- short\n") {
		t.Fatalf("%v, left %q\n%s", err, ids(left), block)
	}
	for line := range strings.Lines(block) {
		if len(line) > 900 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	h.DataDir = "/" + strings.Repeat("d", 900)
	if _, _, err := Crontab(h, nil); !errors.Is(err, ErrUnfit) {
		t.Errorf("a tick longer than a line: %v", err)
	}
}

// Debian's own reader takes the block, also below what a person may have written.
func TestCronReadsTheBlock(t *testing.T) {
	testkit.Program(t, "crontab", "cron")
	help, _ := exec.Command("crontab", "-h").CombinedOutput()
	if !strings.Contains(string(help), "dry run") {
		testkit.Missing(t, "needs Debian's crontab, which has a dry run: apt-get install cron")
	}
	h := host(t)
	h.Ollim = "/home/ada@example.org/a+b,c:d/ollim=1.0"
	jobs := someJobs(t)
	for _, text := range hostile {
		jobs = append(jobs, routine(t, "h"+strings.Repeat("x", len(jobs)), "5 4 1-7 */3 *", described(text)))
	}
	block, _, err := Crontab(h, jobs)
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range []string{"", "# mine\nSHELL=/bin/csh\nMAILTO=\"\"\n5 5 * * * echo 100\\%", "@reboot true\n"} {
		table, err := Merge([]byte(old), block)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "crontab")
		if err := os.WriteFile(path, table, 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("crontab", "-n", path).CombinedOutput(); err != nil || strings.Contains(string(out), "error") {
			t.Errorf("%v: %s\n%s", err, out, table)
		}
	}
	broken := filepath.Join(t.TempDir(), "crontab")
	if err := os.WriteFile(broken, []byte(strings.Replace(block, " * ", " *x ", 1)+"61 * * * * x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("crontab", "-n", broken).CombinedOutput(); err == nil {
		t.Errorf("it takes anything: %s", out)
	}
}

// What stands in a line means what stands in the routine.
func TestCrontabLinesMeanTheRoutine(t *testing.T) {
	jobs := someJobs(t)
	block, left, err := Crontab(host(t), jobs)
	if err != nil {
		t.Fatal(err)
	}
	paris, now := zone(t, "Europe/Paris"), time.Date(2026, 3, 7, 9, 0, 0, 0, time.UTC)
	lines := 0
	for line := range strings.Lines(block) {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "#") || words[len(words)-1] == "tick" {
			continue
		}
		lines++
		written, err := cron.Parse(strings.Join(words[:5], " "))
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			if j.ID != words[len(words)-1] {
				continue
			}
			want, ok := j.Schedule.Next(now, paris)
			if got, found := written.Next(now, paris); !found || !ok || !got.Equal(want) || written.Wild() != j.Schedule.Wild() {
				t.Errorf("%s: %v, want %v", line, got, want)
			}
		}
	}
	if lines+len(left) != 8 {
		t.Errorf("%d lines and %d left of 8 routines", lines, len(left))
	}
}
