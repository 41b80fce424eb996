package process

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRuns(t *testing.T) {
	proc := t.TempDir()
	start := func(pid, name string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(proc, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "comm"), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	look := func(wantRuns, wantKnown bool) {
		t.Helper()
		if runs, known := Runs(proc, "cron", "crond"); runs != wantRuns || known != wantKnown {
			t.Errorf("runs %v, known %v; want %v, %v", runs, known, wantRuns, wantKnown)
		}
	}
	look(false, false)
	start("27", "crontab")
	look(false, false)
	start("1", "systemd")
	look(false, true)
	start("300", "crond")
	look(true, true)
}
