package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/policy"
)

// fixture is a data directory with protected places, links of every kind, and two approved dirs beside it.
type fixture struct {
	dir, read, write, secret string
}

func newFixture(t testing.TB) fixture {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := fixture{filepath.Join(top, "data"), filepath.Join(top, "lib"), filepath.Join(top, "src"), filepath.Join(top, "secret")}
	for _, path := range []string{
		"data/notes/deep/er/c.md", "data/notes/a.md", "data/notes/b.txt", "data/notes/.hidden.md", "data/notes/.git/hook.md", "data/top.md",
		"data/state/x.md", "data/state/runs/1/run.json", "data/sessions/s.md", "data/gates/g", "data/config.yaml", "data/tool-policy.yaml",
		"data/state.md", "data/statement/x.md", "data/routines/r.md",
		"lib/l.md", "lib/l.go", "src/s.md", "src/s.go", "src/.git/config", "secret", "out/o.md",
	} {
		write(t, filepath.Join(top, path))
	}
	for link, target := range map[string]string{
		"data/link": "../out", "data/in": "notes", "data/notes/up": "../state", "data/dangling.md": "../out/none.md",
		"data/alias.md": "notes/a.md", "data/cfg.md": "config.yaml", "data/loop": "loop", "data/notes/here": "..", "data/mylib": "../lib",
		"linked": "data", "data/cfg": "config.yaml", "data/my own": "config.yaml",
	} {
		if err := os.Symlink(target, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(h.dir, "config.yaml"), filepath.Join(h.dir, "hard.md")); err != nil {
		t.Fatal(err)
	}
	return h
}

func write(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (h fixture) policy(t testing.TB, patterns ...string) policy.Policy {
	t.Helper()
	p := policy.Policy{
		Roots:     []policy.Root{{Dir: h.dir, Writable: true}, {Dir: h.read}, {Dir: h.write, Writable: true}},
		Protected: []string{h.secret},
		Ollim:     anyCommand,
	}
	for _, name := range []string{"state", "sessions", "gates", "config.yaml", "tool-policy.yaml"} {
		p.Protected = append(p.Protected, filepath.Join(h.dir, name))
	}
	for _, text := range patterns {
		pattern, err := policy.Parse(h.text(text))
		if err != nil {
			t.Fatal(err)
		}
		p.Allow = append(p.Allow, pattern)
	}
	return p
}

// anyCommand lets an agent use every command except the owner's.
func anyCommand(args []string) (string, policy.Access) {
	if command, access := policy.OwnerVerbs().Access(args); command != "" {
		return command, access
	}
	return args[0], policy.All
}

// text puts the directories of the fixture into a text.
func (h fixture) text(s string) string {
	return strings.NewReplacer("DATA", h.dir, "LIB", h.read, "SRC", h.write, "SECRET", h.secret, "TOP", filepath.Dir(h.dir)).Replace(s)
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

// expect checks a verdict, and that its reason is one line.
func expect(t testing.TB, p policy.Policy, allow bool, tool string, input json.RawMessage) {
	t.Helper()
	v := p.Decide(tool, input)
	shown := string(input)
	if len(shown) > 200 {
		shown = shown[:200] + "…"
	}
	if v.Allow != allow {
		t.Errorf("%s %s: allow %v, want %v (%s)", tool, shown, v.Allow, allow, v.Reason)
	}
	if v.Reason == "" || strings.ContainsAny(v.Reason, "\n\r\x00") || len(v.Reason) > 8000 {
		t.Errorf("%s %s: reason %q", tool, shown, v.Reason)
	}
}

func lines(s string) []string {
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
