package store

import (
	"os"
	"path/filepath"
	"testing"
)

func TestIsDraft(t *testing.T) {
	for name, want := range map[string]bool{
		".a.md.tmp-123": true, ".tmp-1": false, "..tmp-1": true, ".a.tmp-1.md.tmp-42": true, ".tmp-5.tmp-6": true,
		"": false, "a.md": false, "a.md.tmp-123": false, ".a.md": false, ".a.md.tmp-": false, ".a.md.tmp-12x": false, ".a.md.tmp-1.md": false, ".a.md.TMP-1": false,
		".a.md.tmp--1": false, ".a.md.tmp-１": false,
	} {
		if got := IsDraft(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// The file of a killed writer is a draft, for any name; a finished file never is.
func TestDraftsOfWriters(t *testing.T) {
	for _, name := range []string{"a.md", "a.tmp-1.md", ".hidden", "no extension", "x.tmp-7"} {
		path := filepath.Join(t.TempDir(), name)
		draft, err := writeTemp(path, []byte("x"), fileMode, Buffered)
		if err != nil || !IsDraft(filepath.Base(draft)) {
			t.Errorf("%s: %s, %v", name, draft, err)
		}
		if err := os.Rename(draft, path); err != nil || IsDraft(name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
