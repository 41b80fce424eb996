package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// program returns the path of this program as it was called: a link is not resolved, because it may lead to another version
// tomorrow.
func program() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return calledAs(os.Args[0], self), nil
}

// calledAs is the absolute path that leads from a command's first word to the program self. It is self if there is none.
func calledAs(word, self string) string {
	path, err := exec.LookPath(word)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil || !sameFile(path, self) {
		return self
	}
	return path
}

// vanishes says why a program will not be there for long; "" if it probably will.
func (d *Deps) vanishes(path string) string {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = path
	}
	temporary := "/tmp"
	if dir, ok := d.Lookup("TMPDIR"); ok && filepath.IsAbs(dir) {
		temporary = filepath.Clean(dir)
	}
	for _, p := range []string{path, resolved} {
		switch {
		case builtForOneRun(p):
			return "go run has built it and deletes it"
		case slices.ContainsFunc([]string{temporary, "/var/tmp", "/dev/shm", "/run/user"}, func(dir string) bool { return strings.HasPrefix(p, dir+"/") }):
			if p != path { // a link is named by what it leads to
				return p + ", to which it leads, is in a temporary directory"
			}
			return "it is in a temporary directory"
		}
	}
	return ""
}

// builtForOneRun reports whether a program is one that go run has built. Before Go 1.24 these were in a directory of their own, and
// are since in the build cache if they have been run before.
func builtForOneRun(path string) bool {
	return regexp.MustCompile(`/go-build\d+/.*/exe/|/[0-9a-f]{64}-d/[^/]+$`).MatchString(path)
}
