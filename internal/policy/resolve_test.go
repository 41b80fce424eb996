package policy_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ollim/ollim/internal/policy"
)

// What a link that leads nowhere will lead to can be made later: only what is missing below the path's own names is taken as it is.
func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/b"), 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"in": "a/b", "up": "in/..", "absolute": filepath.Join(dir, "up"), "nowhere": "a/none", "twice": "nowhere", "loop": "loop",
		"through": "file/../a", "around": "none/../a", "named": "file",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"a": "a", "file": "file", "named": "file", "in": "a/b", "up": "a", "absolute/b": "a/b", // these exist
		"none": "none", "in/none": "a/b/none", "absolute/x/y": "a/x/y", "x/in": "x/in",
		"nowhere": "", "nowhere/x": "", "twice": "", "loop": "", "loop/x": "", "file/x": "", "named/x": "", "through": "", "around": "", "around/b": "",
	} {
		real, err := policy.Resolve(filepath.Join(dir, path))
		if (err == nil) != (want != "") || err == nil && real != filepath.Join(dir, want) {
			t.Errorf("%s: %q, %v, want %q", path, real, err, want)
		}
		_, exists := os.Stat(filepath.Join(dir, path))
		real, _, err = policy.Follow(filepath.Join(dir, path), nil)
		if (err == nil) != (exists == nil) || err == nil && real != filepath.Join(dir, want) || want != "" && err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("followed, %s: %q, %v", path, real, err)
		}
	}
}
