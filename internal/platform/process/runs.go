package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Runs reports whether a process with one of these names runs. It is known only where proc, which is /proc, shows the processes of all
// users: the first process is then among them.
func Runs(proc string, names ...string) (runs, known bool) {
	files, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "comm"))
	for _, file := range files {
		name, readErr := os.ReadFile(file)
		if readErr == nil && slices.Contains(names, strings.TrimSpace(string(name))) {
			return true, true
		}
	}
	return false, err == nil && slices.Contains(files, filepath.Join(proc, "1", "comm"))
}
