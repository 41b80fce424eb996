package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// UnderCron says whether a process that this one descends from is a cron daemon. None is found behind an ancestor that has
// ended, and none at all without /proc.
func UnderCron() bool {
	for pid := os.Getppid(); pid > 0; pid = parent(pid) {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && isCron(cmdline) {
			return true
		}
	}
	return false
}

// isCron knows the daemons of Debian (whose child for one line calls itself CRON), cronie, busybox and fcron by their arguments.
func isCron(cmdline []byte) bool {
	args := strings.Split(string(bytes.TrimRight(cmdline, "\x00")), "\x00")
	name := filepath.Base(args[0])
	if name == "busybox" && len(args) > 1 {
		name = args[1]
	}
	return slices.Contains([]string{"cron", "CRON", "crond", "fcron"}, name)
}
