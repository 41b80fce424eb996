package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Runs reports whether a process with one of these names runs. known is false unless proc, which is /proc, shows the processes of all
// users, as it does if it shows process 1.
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
