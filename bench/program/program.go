// Package program finds the program that a benchmark measures.
package program

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// Path returns the given path or, for "", that of a program in dir which it builds from this repository.
func Path(given, dir string) (string, error) {
	if given != "" {
		return given, nil
	}
	path := filepath.Join(dir, "ollim")
	if out, err := exec.Command("go", "build", "-o", path, "./cmd/ollim").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
}
