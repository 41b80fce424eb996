package builtin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
)

// judged makes a use that the policy has allowed, and runs meanwhile between the verdict and the use, as the native engine would.
// allowed is false if the policy refuses it.
func (h fixture) judged(t *testing.T, meanwhile func(), tool string, kv ...any) (r engine.ToolResult, allowed bool) {
	t.Helper()
	p := policy.Policy{Allow: h.box.Allow, Roots: h.box.Roots, Protected: h.box.Protected}
	if !p.Decide(tool, object(t, kv...)).Allow {
		return r, false
	}
	meanwhile()
	return h.call(t, tool, kv...), true
}

// swapIn puts a link in the place of a directory.
func swapIn(t *testing.T, path, to string) {
	t.Helper()
	if err := os.Rename(path, path+"-aside"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// TestSwappedAfterTheVerdict: a directory that becomes a link between the verdict and the use leads to no place that the policy does
// not allow, though that lies within the roots.
func TestSwappedAfterTheVerdict(t *testing.T) {
	for name, c := range map[string]struct{ swap, to, tool string }{
		"write, last folder":  {"notes/deep/er", "..", "Write"},
		"write, first folder": {"notes/deep", "..", "Write"},
		"edit":                {"notes/deep/er", "../..", "Edit"},
		"read":                {"notes/deep/er", "../..", "Read"},
		"glob":                {"notes/deep/er", "../..", "Glob"},
		"grep":                {"notes/deep/er", "../..", "Grep"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			h.box.Allow = nil
			h.allow(t, c.tool+"(./notes/deep/**)")
			h.box.Open()
			h.put(t, "data/c.md", "alpha top\n")
			input := map[string][]any{
				"Write": {"file_path", "notes/deep/er/new.md", "content", "x"},
				"Edit":  {"file_path", "notes/deep/er/c.md", "old_string", "alpha", "new_string", "x"},
				"Read":  {"file_path", "notes/deep/er/c.md"}, "Glob": {"path", "notes/deep/er", "pattern", "*.md"},
				"Grep": {"path", "notes/deep/er", "pattern", "alpha"},
			}[c.tool]
			if r, allowed := h.judged(t, func() {}, c.tool, input...); !allowed || r.IsError {
				t.Fatalf("before the swap: allowed %v, %+v", allowed, r)
			}
			r, allowed := h.judged(t, func() { swapIn(t, filepath.Join(h.dir, c.swap), c.to) }, c.tool, input...)
			if !allowed || !r.IsError {
				t.Errorf("allowed %v, %+v", allowed, r)
			}
			for _, path := range []string{"data/new.md", "data/er/new.md", "data/notes/new.md", "data/notes/deep/new.md"} {
				if _, err := os.Lstat(filepath.Join(h.top, path)); err == nil {
					t.Errorf("%s was written", path)
				}
			}
			if got := h.get("data/c.md"); got != "alpha top\n" {
				t.Errorf("c.md is now %q", got)
			}
		})
	}
}

// TestSwappedRoot: a root that is another directory than when the run began is not used, whatever the policy makes of it now.
func TestSwappedRoot(t *testing.T) {
	for _, to := range []string{"..", ".", "out"} {
		h := newFixture(t)
		h.box.Open()
		swapIn(t, h.src, to)
		for _, tool := range []string{"Write", "Read", "Glob", "Edit"} {
			input := []any{"file_path", h.src + "/s.md"}
			switch tool {
			case "Write":
				input = append(input, "content", "x")
			case "Edit":
				input = append(input, "old_string", "alpha", "new_string", "x")
			case "Glob":
				input = []any{"path", h.src, "pattern", "*"}
			}
			if r, allowed := h.judged(t, func() {}, tool, input...); allowed && !r.IsError {
				t.Errorf("src is a link to %s: %s: %s", to, tool, r.Text)
			}
		}
		if _, err := os.Lstat(filepath.Join(h.top, "s.md")); err == nil {
			t.Errorf("src is a link to %s: written beside it", to)
		}
		h.untouched(t)
	}
}
