package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/apitest"
)

// TestCronFires lets Debian's cron, started here, fire a routine from a crontab line with cron's bare environment. It takes
// up to a minute, because that is how often cron looks.
func TestCronFires(t *testing.T) {
	cron := debianCron(t)
	c, api := withClaude(t)
	c.write("routines/daily-market.md", daily)
	api.Reply(apitest.Reply{Text: "done"})

	line := fmt.Sprintf("* * * * * root %s --data-dir %s fire daily-market\n", c.path, c.data)
	table := filepath.Join("/etc/cron.d", fmt.Sprintf("ollim-test-%d", os.Getpid()))
	if err := os.WriteFile(table, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(table) })
	daemon := exec.Command(cron, "-f")
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })

	deadline := time.Now().Add(75 * time.Second)
	for !strings.Contains(c.ok("run", "list", "daily-market"), "\tok\t") {
		if time.Now().After(deadline) {
			t.Fatalf("cron has not fired it: %s", c.ok("run", "list"))
		}
		time.Sleep(500 * time.Millisecond)
	}
	if got := len(api.Requests()); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
}

// debianCron is the daemon, where it may be started: as root, with none running.
func debianCron(t *testing.T) string {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("CI") == "true" {
		missing = t.Fatalf
	} else if os.Getenv("OLLIM_TEST_CRON") == "" {
		t.Skip("takes a minute: set OLLIM_TEST_CRON=1")
	}
	path, err := exec.LookPath("cron")
	if err != nil {
		missing("no cron: apt-get install cron")
	}
	if os.Getuid() != 0 {
		missing("cron can be started by root only")
	}
	if out, _ := exec.Command("pgrep", "-x", "cron").Output(); len(out) > 0 {
		missing("a cron is running already")
	}
	return path
}
