package installer

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/platform/cron"
	"github.com/ollim/ollim/internal/state/job"
)

var rewrite = flag.Bool("update", false, "write the golden files anew")

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// routine is one as its file would be read.
func routine(t testing.TB, id, line string, changes ...func(*job.Job)) job.Job {
	t.Helper()
	s, err := cron.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	j := job.New(job.Routine)
	j.ID, j.Path, j.Cron, j.Schedule, j.Body = id, "/data/routines/"+id+".md", line, s, "Do it."
	for _, change := range changes {
		change(&j)
	}
	return j
}

func described(text string) func(*job.Job) { return func(j *job.Job) { j.Description = text } }

func in(zone string) func(*job.Job) { return func(j *job.Job) { j.Timezone = zone } }

// host is a machine in Paris.
func host(t testing.TB) Host {
	t.Helper()
	paris := zone(t, "Europe/Paris")
	return Host{Ollim: "/usr/local/bin/ollim", DataDir: "/home/ada/.ollim-bot", Zone: paris, Configured: paris, User: "ada"}
}

// someJobs has a job of every sort that matters to a scheduler, not in order.
func someJobs(t testing.TB) []job.Job {
	t.Helper()
	hook, reminder := job.New(job.Webhook), job.New(job.Reminder)
	hook.ID, reminder.ID = "hook", "reminder"
	return []job.Job{
		routine(t, "morning", "0 9 * * 1-5", described("Read the markets, 50% of them")),
		routine(t, "either-day", "30 4 1,15 * 5"),
		routine(t, "both-days", "0 0 */2 * 1", described("An AND of day fields")),
		routine(t, "wild", "*/20 * * * *"),
		routine(t, "busy", "*/5 8-18 * * 1-6"),
		routine(t, "tokyo", "0 9 * * *", in("Asia/Tokyo")),
		routine(t, "at.home_Again", "15 7,19 * 1-3 *", in("Europe/Paris")),
		routine(t, "late", "@weekly", func(j *job.Job) { j.CatchUp = 36 * time.Hour }),
		routine(t, "never", "0 0 31 2 *"),
		routine(t, "off", "0 9 * * *", func(j *job.Job) { j.Enabled = false }),
		hook, reminder,
	}
}

// hostile are descriptions that try to become something else in some format.
var hostile = []string{
	"ends with a backslash \\", "two\nlines\r\n[Service]\nExecStart=/bin/false", "100 %n %% %", "\x1b[31mred\x00\u0085\u2028\u202e",
	`"quotes' and $HOME ${HOME} $(id) ` + "`id`", "</string><key>x</key> --> ]]>", "# comment ; too", "- a: [b, {c}] & *d !e |", "{{.DataDir}}",
	"\xff\xfe", strings.Repeat("long ", 100), strings.Repeat("\\", 200), "%", "\t", "é — 日本 🎉", "=", "\a",
}

// hostilePaths are directories with which a format may have trouble but that exist somewhere.
var hostilePaths = []string{"/home/ada lovelace/.ollim", `/srv/50%/$HOME/"x"/back\slash`, "/srv/it's ${X} $(HOME)", "/srv/<a&b>", "/srv/日本", "/srv/;x #y"}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func ids(left []Left) string {
	var all []string
	for _, l := range left {
		all = append(all, l.Job.ID+": "+l.Why)
	}
	return strings.Join(all, "\n")
}
