package process

import (
	"bytes"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// UnderCron reports whether an ancestor of this process is a cron daemon. Without /proc it finds nothing.
func UnderCron() bool {
	for pid := range ancestors {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && isCron(cmdline) {
			return true
		}
	}
	return false
}

// isCron recognizes the daemons of Debian (whose child for one line calls itself CRON), cronie, busybox and fcron by
// their arguments.
func isCron(cmdline []byte) bool {
	args := strings.Split(string(bytes.TrimRight(cmdline, "\x00")), "\x00")
	name := filepath.Base(args[0])
	if name == "busybox" && len(args) > 1 {
		name = args[1]
	}
	return slices.Contains([]string{"cron", "CRON", "crond", "fcron"}, name)
}

// UnderService reports whether a systemd service started this process, as a timer does, and the process has no
// controlling terminal. A program opened on a desktop runs in a scope, and a command run by ssh has no INVOCATION_ID.
// invocation is the value of that variable.
func UnderService(invocation string) bool {
	if invocation == "" {
		return false
	}
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0); err == nil {
		_ = tty.Close()
		return false
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	return err == nil && inService(string(groups))
}

// inService reports whether a line of /proc/PID/cgroup names a service, in systemd's hierarchy.
func inService(groups string) bool {
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(fields) == 3 && (fields[1] == "" || fields[1] == "name=systemd") && strings.HasSuffix(fields[2], ".service") {
			return true
		}
	}
	return false
}

// CronEnv returns the environment that Debian's cron gives to a command of the user whose home it is.
func CronEnv(home string) []string {
	env := []string{"HOME=" + home, "SHELL=/bin/sh", "PATH=/usr/bin:/bin"}
	if u, err := user.Current(); err == nil {
		env = append(env, "LOGNAME="+u.Username)
	}
	return env
}
