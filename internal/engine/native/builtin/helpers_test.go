package builtin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/testkit"
)

// fixture is a working directory with protected places and links of every kind, and approved directories beside it.
type fixture struct {
	top, dir, lib, src string
	box                *Box
}

func newFixture(t testing.TB) fixture {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := fixture{top: top, dir: filepath.Join(top, "data"), lib: filepath.Join(top, "lib"), src: filepath.Join(top, "src")}
	for path, text := range map[string]string{
		"data/top.md": "top\n", "data/notes/a.md": "alpha\nbeta\ngamma\n", "data/notes/deep/er/c.md": "alpha deep\n", "data/notes/b.txt": "beta\n",
		"data/notes/.hidden.md": "alpha hidden\n", "data/notes/.git/hook.md": "alpha git\n", "data/state/x.md": "SECRET alpha\n",
		"data/sessions/s.md": "SECRET alpha\n", "data/config.yaml": "SECRET alpha\n", "data/state.md": "alpha not state\n",
		"lib/l.md": "alpha lib\n", "src/s.md": "alpha src\n", "out/o.md": "SECRET alpha out\n", "data/inner/i.md": "alpha inner\n",
	} {
		h.put(t, path, text)
	}
	for link, target := range map[string]string{
		"data/out": "../out", "data/in": "notes", "data/st": "state", "data/out.md": "../out/o.md", "data/alias.md": "notes/a.md",
		"data/abs.md": filepath.Join(h.dir, "notes/a.md"), "data/cfg.md": "config.yaml", "data/dangling.md": "../out/none.md",
		"data/none.md": "notes/none.md", "data/mylib": "../lib", "data/loop": "loop", "data/notes/up": "..", "data/notes/link.md": "a.md",
	} {
		if err := os.Symlink(target, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(h.dir, "config.yaml"), filepath.Join(h.dir, "hard.md")); err != nil {
		t.Fatal(err)
	}
	h.box = &Box{
		Roots: []policy.Root{{Dir: h.dir, Writable: true}, {Dir: h.lib}, {Dir: h.src, Writable: true}, {Dir: filepath.Join(h.dir, "inner")}},
		Env:   []string{"PATH=/usr/local/bin:/usr/bin:/bin", "OLLIM_TEST=yes"},
	}
	for _, root := range h.box.Roots {
		texts, err := policy.OfDir(root)
		if err != nil {
			t.Fatal(err)
		}
		h.allow(t, texts...)
	}
	for _, name := range []string{"state", "sessions", "config.yaml", "later"} {
		h.box.Protected = append(h.box.Protected, filepath.Join(h.dir, name))
	}
	return h
}

// allow adds patterns to what the box may do.
func (h fixture) allow(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		p, err := policy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		h.box.Allow = append(h.box.Allow, p)
	}
}

func (h fixture) put(t testing.TB, path, text string) {
	t.Helper()
	path = filepath.Join(h.top, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := testkit.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// get is a file's text, or what is wrong with it.
func (h fixture) get(path string) string {
	data, err := os.ReadFile(filepath.Join(h.top, path))
	if err != nil {
		return "error: " + err.Error()
	}
	return string(data)
}

// untouched checks that nothing outside the reach of the tools has changed.
func (h fixture) untouched(t testing.TB) {
	t.Helper()
	for path, text := range map[string]string{
		"data/state/x.md": "SECRET alpha\n", "data/sessions/s.md": "SECRET alpha\n", "data/config.yaml": "SECRET alpha\n",
		"out/o.md": "SECRET alpha out\n", "lib/l.md": "alpha lib\n", "data/inner/i.md": "alpha inner\n",
	} {
		if got := h.get(path); got != text {
			t.Errorf("%s is now %q", path, got)
		}
	}
	for path, most := range map[string]int{"out": 1, "data/state": 1, "data/sessions": 1, "lib": 1, "data/inner": 1} {
		if entries, _ := os.ReadDir(filepath.Join(h.top, path)); len(entries) != most {
			t.Errorf("%s holds %v", path, entries)
		}
	}
	if _, err := os.Lstat(filepath.Join(h.dir, "later")); err == nil {
		t.Error("a protected place was made")
	}
}

func object(t testing.TB, kv ...any) json.RawMessage {
	t.Helper()
	m := map[string]any{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (h fixture) call(t testing.TB, tool string, kv ...any) engine.ToolResult {
	t.Helper()
	return h.box.Call(t.Context(), tool, object(t, kv...))
}

// good is the text of a call that works.
func (h fixture) good(t testing.TB, tool string, kv ...any) string {
	t.Helper()
	r := h.call(t, tool, kv...)
	if r.IsError {
		t.Errorf("%s %v: %s", tool, kv, r.Text)
	}
	return r.Text
}

// bad checks that a call fails, with these words.
func (h fixture) bad(t testing.TB, words, tool string, kv ...any) {
	t.Helper()
	r := h.call(t, tool, kv...)
	if !r.IsError || !strings.Contains(r.Text, words) || strings.Contains(r.Text, "SECRET") {
		t.Errorf("%s %v: error %v, %.300q; want %q", tool, kv, r.IsError, r.Text, words)
	}
}
