package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Inside reports whether a process that this one descends from began with the variable name in its environment, not empty, and
// gives the value of the closest one. What a process was started with stays to be seen, whatever it or its children unset. Nothing
// is found behind an ancestor that has ended, because its children are given to another, and nothing at all without /proc.
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

// parent is field 4 of /proc/PID/stat, 0 when there is none.
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
