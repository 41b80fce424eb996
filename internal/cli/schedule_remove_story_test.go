package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScheduleRemoveWithoutName: the only scheduler that has entries of the data directory is meant; of none or several one must be named.
func TestScheduleRemoveWithoutName(t *testing.T) {
	t.Parallel()
	w := newBareWorld(t, map[string]string{
		"crontab": homeCrontab, "systemctl": "exit 0", "kubectl": `echo "$*" >>"$HOME/asked"; echo '{"kind":"List","items":[]}'`,
	})
	w.must("init", "--engine", "none")
	refused := func(want string) {
		t.Helper()
		if r := w.run("schedule", "remove"); r.status != int(statusUsage) || !strings.Contains(r.errOut, want) {
			t.Errorf("%+v", r)
		}
	}
	table := func() string {
		text, err := os.ReadFile(filepath.Join(w.home, "table"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	units := func() int {
		list, err := filepath.Glob(filepath.Join(w.home, ".config/systemd/user/ollim*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	refused("no entries of this data directory were found: want crontab, systemd or kubernetes")
	w.must("schedule", "install", "crontab")
	w.must("schedule", "install", "systemd")
	refused("several have entries: want one of crontab, systemd")
	if !strings.Contains(table(), " tick") || units() == 0 {
		t.Fatalf("%q, %d units", table(), units())
	}
	w.must("schedule", "remove", "crontab")
	w.must("schedule", "remove")
	if table() != "" || units() != 0 {
		t.Errorf("%q, %d units", table(), units())
	}
	w.must("schedule", "install", "crontab")
	w.must("schedule", "remove")
	if table() != "" {
		t.Errorf("%q", table())
	}
	const place = "kubernetes --claim data --folder ada --namespace home"
	w.must(append([]string{"schedule", "install", "--image", "i"}, strings.Fields(place)...)...)
	w.must("schedule", "install", "crontab")
	refused("several have entries: want one of crontab, " + place)
	w.must("schedule", "remove", "crontab")
	if r := w.run("schedule", "remove", "--folder", "other"); r.status != int(statusUsage) || !strings.Contains(r.errOut, "are for ollim schedule remove kubernetes") {
		t.Errorf("%+v", r)
	}
	asked := filepath.Join(w.home, "asked")
	if err := os.Remove(asked); err != nil {
		t.Fatal(err)
	}
	w.must("schedule", "remove")
	if text, err := os.ReadFile(asked); err != nil || !strings.HasPrefix(string(text), "--namespace=home get cronjobs.batch ") || strings.Count(string(text), "\n") != 1 {
		t.Errorf("%q, %v", text, err)
	}
	refused("no entries of this data directory were found")
}
