package process

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// cronVar makes TestAskCron say what it finds.
const cronVar = "OLLIM_CRON_ASK"

// TestUnderCron runs a shell under the name of a cron daemon, whose child asks.
func TestUnderCron(t *testing.T) {
	for name, want := range map[string]string{"/usr/sbin/cron": "yes", "CRON": "yes", "/usr/sbin/crond": "yes", "sh": "no", "/bin/cronie-notes": "no"} {
		for _, script := range []string{`"$0" -test.run '^TestAskCron$'; true`, `sh -c '"$0" -test.run "^TestAskCron$"; true' "$0"; true`} {
			cmd := exec.Command("/bin/sh", "-c", script, os.Args[0])
			cmd.Args[0] = name
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", cronVar + "=1"}
			out, err := cmd.CombinedOutput()
			if got, _, _ := strings.Cut(string(out), "\n"); err != nil || got != want {
				t.Errorf("%s: %q, %v, want %s", name, out, err, want)
			}
		}
	}
}

// TestAskCron is a grandchild of TestUnderCron.
func TestAskCron(*testing.T) {
	switch {
	case os.Getenv(cronVar) == "":
	case UnderCron():
		os.Stdout.WriteString("yes\n")
	default:
		os.Stdout.WriteString("no\n")
	}
}

func TestIsCron(t *testing.T) {
	for cmdline, want := range map[string]bool{
		"/bin/busybox\x00crond\x00-f\x00": true, "/bin/busybox\x00sh\x00": false, "busybox\x00": false, "": false, "cron\x00-f\x00": true,
		"vi\x00/usr/sbin/cron\x00": false, "crond": true, "/usr/sbin/CRON\x00-f\x00": true,
	} {
		if got := isCron([]byte(cmdline)); got != want {
			t.Errorf("%q: %v", cmdline, got)
		}
	}
}

func TestInService(t *testing.T) {
	for groups, want := range map[string]bool{
		"0::/system.slice/ollim-tick.service\n":                                                   true,
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/ollim-tick.service\n":         true,
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-terminal-7.scope\n": false,
		"0::/user.slice/user-1000.slice/session-2.scope\n":                                        false,
		"4:memory:/system.slice/a.service\n1:name=systemd:/system.slice/a.service\n":              true,
		"4:memory:/system.slice/a.service\n1:name=systemd:/\n":                                    false,
		"0::/\n": false, "": false, "garbage": false,
	} {
		if got := inService(groups); got != want {
			t.Errorf("%q: %v", groups, got)
		}
	}
	if UnderService("") {
		t.Error("a process without an invocation is in no service")
	}
}
