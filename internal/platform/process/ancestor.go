package process

import (
	"fmt"
	"os"
	"strings"
)

// ancestors yields the process ids of the parent, its parent and so on. It ends at an ancestor that has ended, because its
// children are reparented. Without /proc it finds the parent alone.
func ancestors(yield func(pid int) bool) {
	for pid := os.Getppid(); pid > 0 && yield(pid); {
		pid = stat(pid).parent
	}
}

// Inside reports whether an ancestor of this process was started with a non-empty variable name in its environment, and
// returns the value of the closest one. The initial environment of a process stays visible even if it or its children
// unset the variable. Without /proc it finds nothing.
func Inside(name string) (value string, inside bool) {
	for pid := range ancestors {
		for _, entry := range variables(environment(fmt.Sprintf("/proc/%d", pid))) {
			if value, found := strings.CutPrefix(entry, name+"="); found && value != "" {
				return value, true
			}
		}
	}
	return "", false
}
