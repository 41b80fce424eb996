package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// CI reports whether CI=true: then the tests take as long as they need, and no part of the machine may be missing.
func CI() bool { return os.Getenv("CI") == "true" }

// Full returns all if CI=true, else some.
func Full(all, some int) int {
	if CI() {
		return all
	}
	return some
}

// OnlyInCI skips a test, or a case, outside CI, because it takes seconds of processor time or repeats what another one shows. why is what it
// shows, or what is the same.
func OnlyInCI(t testing.TB, why string) {
	t.Helper()
	if !CI() {
		t.Skipf("%s: set CI=true to run it, which needs what .ci/run installs", why)
	}
}

// Missing skips a test for which the machine lacks something. The message names it and says how to get it. If CI=true the test fails.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if CI() {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Program returns the path of a program in PATH. Without it the test is skipped, and the message names the package of Debian to install.
func Program(t testing.TB, name, from string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "no %s: apt-get install %s", name, from)
	}
	return path
}

// Installed returns the path of what .ci/run installs and the tests of a package need: the value of a variable, else a place
// below the tests' cache directory. It must hold a file. If the variable names a place without it, the test fails.
func Installed(t testing.TB, what, variable, place, file string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(cache, "ollim-test", place)
	}
	if _, err := os.Stat(filepath.Join(path, file)); err != nil {
		if os.Getenv(variable) != "" {
			t.Fatalf("%s: %v", variable, err)
		}
		Missing(t, "no %s: install what .ci/run names, and set %s: %v", what, variable, err)
	}
	return path
}
