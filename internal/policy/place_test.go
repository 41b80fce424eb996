package policy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/policy"
)

// What an engine is told about a path is what Decide has decided about it.
func TestPlaceAgreesWithDecide(t *testing.T) {
	h := newFixture(t)
	p := h.policy(t, "Read", "Write(./**.md)", "Write(SRC/**)", "Write(LIB/**)")
	g, err := p.Ground()
	if err != nil || g.Dir() != h.dir {
		t.Fatal(g.Dir(), err)
	}
	for path, want := range map[string]policy.Place{
		"top.md": {Real: "DATA/top.md", Root: "DATA", Writable: true}, "in/a.md": {Real: "DATA/notes/a.md", Root: "DATA", Writable: true},
		"alias.md": {Real: "DATA/notes/a.md", Root: "DATA", Writable: true}, "mylib/l.md": {Real: "LIB/l.md", Root: "LIB"}, "SRC/new/x": {Real: "SRC/new/x", Root: "SRC", Writable: true},
		"LIB": {Real: "LIB", Root: "LIB"}, ".": {Real: "DATA", Root: "DATA", Writable: true}, "notes/here/top.md": {Real: "DATA/top.md", Root: "DATA", Writable: true},
		"state/x.md": {}, "State/x.md": {}, "notes/up/x.md": {}, "cfg": {}, "hard.md": {}, "../out/o.md": {}, "link/o.md": {}, "loop": {}, "dangling.md": {}, "": {}, "/etc": {}, "TOP/linked/top.md": {Real: "DATA/top.md", Root: "DATA", Writable: true},
	} {
		path, want.Real, want.Root = h.text(path), h.text(want.Real), h.text(want.Root)
		got, err := g.Place(path)
		if got != want || (err == nil) != (want.Real != "") {
			t.Errorf("%s: %+v, %v", path, got, err)
		}
		if info, statErr := os.Stat(got.Real); err == nil && statErr == nil && info.IsDir() {
			continue
		}
		expect(t, p, err == nil, "Read", object(t, "file_path", path))
		expect(t, p, err == nil && got.Writable, "Write", object(t, "file_path", path, "content", ""))
	}
	if _, err := (policy.Policy{}).Ground(); err == nil {
		t.Error("ground without a working directory")
	}
}

func TestHides(t *testing.T) {
	h := newFixture(t)
	g, err := h.policy(t).Ground()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"state": true, "STATE/x/y": true, "config.yaml": true, "state.md": false, "statement/x.md": false, "notes": false, "hard.md": true, "sessions/new": true,
	} {
		path = filepath.Join(h.dir, path)
		info, _ := os.Lstat(path)
		if got := g.Hides(path, info); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	p := h.policy(t)
	p.Protected = []string{filepath.Join(h.dir, "link")} // the link itself as well as where it leads
	if g, err := p.Ground(); err != nil || !g.Hides(filepath.Join(h.dir, "link"), nil) || !g.Hides(filepath.Join(filepath.Dir(h.dir), "out"), nil) {
		t.Error("a protected link", err)
	}
	if info, err := os.Stat(filepath.Join(h.dir, "state")); err != nil || !g.Hides(filepath.Join(h.dir, "notes/other"), info) {
		t.Error("a protected folder under another name", err)
	}
}

func TestSearched(t *testing.T) {
	for glob, want := range map[string]string{
		"*.md": "a.md x/b.md x/y/c.md .h.md x/.h.md", "./*.md": "a.md .h.md", "**/*.md": "a.md x/b.md x/y/c.md .h.md x/.h.md", "x/*.md": "x/b.md x/.h.md",
		"x/**": "x/b.md x/y/c.md x/.h.md", "?.md": "a.md x/b.md x/y/c.md", "x/?/*": "x/y/c.md", "**/y/*": "x/y/c.md", "c.md": "x/y/c.md", "é?": "é1", "?1": "é1", "**.md": "a.md x/b.md x/y/c.md .h.md x/.h.md",
		"*": "a.md x/b.md x/y/c.md .h.md x/.h.md é1", "A.md": "",
	} {
		s, err := policy.Searched("Glob", object(t, "pattern", glob))
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, path := range []string{"a.md", "x/b.md", "x/y/c.md", ".h.md", "x/.h.md", "é1"} {
			names := strings.Split(path, "/")
			if s.Finds(names) {
				found = append(found, path)
				for i := 1; i < len(names); i++ {
					if !s.Enters(names[:i]) {
						t.Errorf("%s finds %s, but does not enter %v", glob, path, names[:i])
					}
				}
			}
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%s finds %q, want %q", glob, got, want)
		}
	}
	for _, glob := range []string{"", "/a", "../a", "{a,b}", "[a]", "a b", "a//b", "***", "~"} {
		if _, err := policy.Searched("Glob", object(t, "pattern", glob)); err == nil {
			t.Errorf("%q is read", glob)
		}
	}
	if s, err := policy.Searched("Glob", object(t, "pattern", "x/*.md")); err != nil || s.Enters([]string{"y"}) || !s.Enters([]string{"x"}) {
		t.Error("enters what cannot matter", err)
	}
	if _, err := policy.Searched("Grep", object(t, "pattern", "x", "glob", "a/*.md")); err == nil {
		t.Error("a folder in a glob of Grep")
	}
	if s, err := policy.Searched("Grep", object(t, "pattern", "x")); err != nil || !s.Finds([]string{"a", ".b", "c"}) {
		t.Error("Grep without a glob", err)
	}
}

func TestWhatOthersRead(t *testing.T) {
	for path, want := range map[string]string{"/a/b/c": "b c", "/a": "", "/ab": "-", "/": "-"} {
		names, ok := policy.Below(path, "/a")
		if got := strings.Join(names, " "); ok != (want != "-") || ok && got != want {
			t.Errorf("%s: %q, %v", path, got, ok)
		}
	}
	if names, ok := policy.Below("/x/y", "/"); !ok || len(names) != 2 {
		t.Error(names, ok)
	}
	if host, err := policy.PublicHost("https://EXAMPLE.com:8080/x"); host != "example.com" || err != nil {
		t.Error(host, err)
	}
	if policy.CheckInput("Read", object(t, "file_path", "x")) != nil || policy.CheckInput("Read", object(t, "path", "x")) == nil {
		t.Error("input")
	}
}

// TestReplacedRoots: an agent that may write around a root may put a link in its place, which then leads nowhere.
func TestReplacedRoots(t *testing.T) {
	h := newFixture(t)
	out := filepath.Join(filepath.Dir(h.dir), "out")
	inner, kept := filepath.Join(h.write, "inner"), filepath.Join(h.write, ".git")
	if err := os.Symlink(out, inner); err != nil {
		t.Fatal(err)
	}
	p := h.policy(t, "Read("+inner+"/**)", "Write("+inner+"/**)", "Write("+kept+"/**)")
	p.Roots = append(p.Roots, policy.Root{Dir: inner, Writable: true}, policy.Root{Dir: kept, Writable: true})
	expect(t, p, false, "Read", object(t, "file_path", filepath.Join(inner, "o.md")))
	expect(t, p, false, "Write", object(t, "file_path", filepath.Join(inner, "o.md"), "content", "x"))
	expect(t, p, true, "Write", object(t, "file_path", filepath.Join(kept, "x.md"), "content", "x"))
	if got, want := policy.Writable(p.Roots), []string{h.dir, h.write}; !slices.Equal(got, want) {
		t.Errorf("writable %q, want %q", got, want)
	}
}
