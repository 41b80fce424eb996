package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit"
)

// A program is named in entries as it was called, if that leads to it.
func TestCalledAs(t *testing.T) {
	dir := t.TempDir()
	self, link, other := filepath.Join(dir, "ollim-1.2"), filepath.Join(dir, "ollim"), filepath.Join(dir, "other")
	for _, path := range []string{self, other} {
		if err := testkit.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Chdir(dir)
	for word, want := range map[string]string{
		"ollim": link, link: link, "./ollim": link, self: self, "ollim-1.2": self,
		"other": self, other: self, "missing": self, "-ollim": self, "": self,
	} {
		if got := calledAs(word, self); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// A program that vanishes cannot be what a schedule calls.
func TestVanishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deps(nil, nil, nil)
	d.Temporary = temporary()
	if d.vanishes("/tmp/ollim") == "" { // TMPDIR is elsewhere
		t.Error("/tmp is no temporary directory")
	}
	d.Temporary = slices.DeleteFunc(temporary(), func(dir string) bool { return strings.HasPrefix(w.home, dir+"/") }) // those of this test are there
	home := filepath.Join(w.home, "bin")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(w.env["TMPDIR"], "ollim")
	link := filepath.Join(home, "ollim")
	for _, err := range []error{testkit.WriteFile(own, nil, 0o700), os.Symlink(own, link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const hash = "098c7e2903d703bb2a9569c24b059eda5ffbb60f616501dc0057d937cd67ce18"
	for path, want := range map[string]bool{
		own: true, link: true, "/var/tmp/ollim": true, "/run/user/1000/ollim": true, "/dev/shm/x/ollim": true,
		"/home/ada/tmp/go-build4059235238/b001/exe/ollim": true, "/home/ada/.cache/go-build/09/" + hash + "-d/ollim": true, "/cache/09/" + hash + "-d/ollim": true,
		filepath.Join(home, "other"): false, "/usr/bin/ollim": false, "/run/current-system/sw/bin/ollim": false, "/home/ada/go-build/ollim": false,
		"/nix/store/" + hash + "-ollim/bin/ollim": false, w.env["TMPDIR"] + "other/ollim": false,
	} {
		if got := d.vanishes(path); (got != "") != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	if got, want := d.vanishes(link), own+", to which it leads, is in a temporary directory"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
