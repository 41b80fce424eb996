package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Inside reports whether an ancestor of this process was started with a non-empty variable name in its environment, and
// returns the value of the closest one. The initial environment of a process stays visible even if it or its children
// unset the variable. The search ends at an ancestor that has ended, because its children are reparented. Without /proc
// it finds nothing.
func Inside(name string) (value string, inside bool) {
	for pid := os.Getppid(); pid > 0; pid = parent(pid) {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue // of another user, or ended
		}
		for entry := range bytes.SplitSeq(environ, []byte{0}) {
			if key, value, _ := strings.Cut(string(entry), "="); key == name && value != "" {
				return value, true
			}
		}
	}
	return "", false
}

// parent returns field 4 of /proc/PID/stat, 0 if there is none.
func parent(pid int) int {
	fields := statFields(pid)
	if len(fields) < 2 {
		return 0
	}
	ppid, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return ppid
}
