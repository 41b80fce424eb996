package policy_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/ollim/ollim/internal/policy"
)

func TestRead(t *testing.T) {
	h := newFixture(t)
	p := h.policy(t, "Read(./**.md)", "Read(LIB/**)", "Read(./notes/*.txt)")
	for _, path := range lines(`
		top.md
		./top.md
		notes/a.md
		notes//a.md
		notes/./a.md
		notes/deep/er/c.md
		notes/none.md
		notes/.hidden.md
		DATA/notes/a.md
		TOP/linked/notes/a.md
		in/a.md
		alias.md
		state.md
		statement/x.md
		notes/b.txt
		LIB/l.go
		mylib/l.go
		notes/here/top.md`) {
		expect(t, p, true, "Read", object(t, "file_path", h.text(path)))
	}
	for _, path := range append(lines(`
		state/x.md
		./state/x.md
		STATE/x.md
		state
		sessions/s.md
		gates/g
		config.yaml
		cfg.md
		hard.md
		DATA/state/x.md
		TOP/linked/state/x.md
		notes/up/x.md
		notes/up/none.md
		notes/here/state/x.md
		notes/here/notes/here/state/x.md
		state/new/x.md
		in/../state/x.md
		notes/../top.md
		../data/top.md
		link/o.md
		link/new.md
		dangling.md
		loop
		loop/x.md
		top.md/x.md
		notes/c.txt/x
		notes/deep/b.txt
		notes/
		notes
		.
		/
		/etc/passwd
		SECRET
		SRC/s.md
		TOP/out/o.md
		~/x.md
		~
		a\b.md
		$HOME/x.txt
		/proc/self/cwd/top.md`), "", " top.md", "top.md ", "top.md\n", "top.md\x00.txt", "top\u00a0.md", "\ufeff\n", "x\ufffd.md",
		strings.Repeat("a", 300)+".md", strings.Repeat("a/", 3000)+"x.md", strings.Repeat("a/", 1500)+"x.md") {
		expect(t, p, false, "Read", object(t, "file_path", h.text(path)))
	}
	for input, allow := range map[string]bool{
		`{"file_path":"top.md","offset":1,"limit":2,"pages":"1-2"}`: true,
		`{"file_path":"top.md","path":"state/x.md"}`:                false,
		`{"file_path":"top.md","file_path":"state/x.md"}`:           false,
		`{"file_path":["top.md"]}`:                                  false,
		`{"path":"top.md"}`:                                         false,
		`{}`:                                                        false,
	} {
		expect(t, p, allow, "Read", json.RawMessage(input))
	}
	bare := h.policy(t, "Read")
	for path, allow := range map[string]bool{"notes/b.txt": true, "SRC/.git/config": true, "state/x.md": false, "/etc/passwd": false, "hard.md": false} {
		expect(t, bare, allow, "Read", object(t, "file_path", h.text(path)))
	}
}

func TestWrite(t *testing.T) {
	h := newFixture(t)
	p := h.policy(t, "Write(./**.md)", "Write(SRC/**)", "Write(LIB/**)", "Edit(./notes/*)", "Write(./notes/.cfg/**)")
	if err := syscall.Mkfifo(h.dir+"/fifo.md", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range lines(`
		top.md
		new/folder/x.md
		in/x.md
		alias.md
		SRC/s.go
		SRC/a/b/c
		notes/.cfg/x`) {
		expect(t, p, true, "Write", object(t, "file_path", h.text(path), "content", "x"))
	}
	for _, path := range lines(`
		./../x
		../x.md
		link/x
		link/x.md
		state/x.md
		notes/up/x.md
		hard.md
		cfg.md
		dangling.md
		fifo.md
		notes/.hidden.md
		notes/.git/hook.md
		.claude/x.md
		SRC/.git/config
		SRC/.git/hooks/pre-commit
		LIB/new.go
		mylib/new.md
		notes/b.txt
		config.yaml
		tool-policy.yaml
		/tmp/x.md`) {
		expect(t, p, false, "Write", object(t, "file_path", h.text(path), "content", "x"))
	}
	edit := func(path string) json.RawMessage {
		return object(t, "file_path", path, "old_string", "a", "new_string", "b")
	}
	expect(t, p, true, "Edit", edit("notes/b.txt"))
	expect(t, p, false, "Edit", edit("notes/deep/er/c.md"))
	expect(t, p, false, "Edit", edit("top.md"))
	expect(t, p, false, "Edit", object(t, "file_path", "notes/b.txt"))
	expect(t, p, false, "MultiEdit", object(t, "file_path", "notes/b.txt", "edits", []any{}))
	expect(t, h.policy(t, "MultiEdit(notes/*)"), true, "MultiEdit", object(t, "file_path", "notes/b.txt", "edits", []any{}))
	nb := h.policy(t, "NotebookEdit(./**.ipynb)")
	expect(t, nb, true, "NotebookEdit", object(t, "notebook_path", "x.ipynb", "new_source", ""))
	expect(t, nb, false, "NotebookEdit", object(t, "notebook_path", "x.md", "new_source", ""))
	expect(t, nb, false, "NotebookEdit", object(t, "file_path", "x.ipynb", "new_source", ""))
	p.Roots[0].Writable = false
	expect(t, p, false, "Write", object(t, "file_path", "top.md", "content", "x"))
}

// The innermost root decides: a read-only directory inside a writable one stays read-only, and in reverse.
func TestNestedRoots(t *testing.T) {
	h := newFixture(t)
	p := h.policy(t, "Write(./**.md)")
	p.Roots = []policy.Root{{Dir: h.dir, Writable: true}, {Dir: h.dir + "/notes"}, {Dir: h.dir + "/notes/deep", Writable: true}}
	for path, allow := range map[string]bool{"top.md": true, "notes/a.md": false, "notes/deep/x.md": true, "in/a.md": false} {
		expect(t, p, allow, "Write", object(t, "file_path", path, "content", "x"))
	}
}

// A working directory that is named by a link.
func TestLinkedRoot(t *testing.T) {
	h := newFixture(t)
	p := h.policy(t, "Read(./**.md)", "Write(./notes/**)", "Read(TOP/linked/gates/**)", "Glob(./**.md)", "Bash(cat *)")
	p.Roots = []policy.Root{{Dir: h.text("TOP/linked"), Writable: true}}
	for path, allow := range map[string]bool{"top.md": true, "notes/a.md": true, "state/x.md": false, "gates/g": false, "DATA/top.md": true, "DATA/state/x.md": false} {
		expect(t, p, allow, "Read", object(t, "file_path", h.text(path)))
	}
	expect(t, p, true, "Write", object(t, "file_path", "notes/n", "content", ""))
	expect(t, p, true, "Glob", object(t, "pattern", "**/*.md"))
	expect(t, p, false, "Glob", object(t, "pattern", "*.md", "path", "state"))
	bash(t, p, false, "cat state/x.md")
	bash(t, p, false, "cat "+h.dir+"/state/x.md")
	bash(t, p, true, "cat top.md")
}

// Protected places count before they exist, and through links.
func TestProtectedNames(t *testing.T) {
	h := newFixture(t)
	p := h.policy(t, "Write(./**.md)", "Write(./new/**)")
	p.Protected = []string{h.dir + "/new", h.dir + "/in", h.text("TOP/linked/routines")}
	for path, allow := range map[string]bool{"new/x.md": false, "new": false, "in/x.md": false, "notes/x.md": false, "routines/x.md": false, "news/x.md": true} {
		expect(t, p, allow, "Write", object(t, "file_path", path, "content", "x"))
	}
	p.Protected = []string{h.text("TOP/linked/fresh")}
	expect(t, p, false, "Write", object(t, "file_path", "fresh/x.md", "content", "x"))
	p.Protected = []string{h.dir + "/loop"}
	expect(t, p, false, "Write", object(t, "file_path", "x.md", "content", "x"))
}

func TestSearch(t *testing.T) {
	h := newFixture(t)
	p := h.policy(t, "Glob(./**.md)", "Grep(./**.md)", "Grep(LIB/**)", "Glob(SRC/**.go)")
	glob := func(pattern, path string) json.RawMessage {
		if path == "" {
			return object(t, "pattern", pattern)
		}
		return object(t, "pattern", pattern, "path", h.text(path))
	}
	grep := func(glob, path string) json.RawMessage {
		kv := []any{"pattern", "x"}
		if glob != "" {
			kv = append(kv, "glob", glob)
		}
		if path != "" {
			kv = append(kv, "path", h.text(path))
		}
		return object(t, kv...)
	}
	for _, c := range []struct {
		pattern, path string
		allow         bool
	}{
		{"*.md", "notes", true}, {"**/*.md", "notes", true}, {"**.md", "notes", true}, {"./**.md", "notes", true}, {"deep/**/*.md", "notes", true},
		{"notes/*.md", "", true}, {"notes/**/*.md", "", true}, {"routines/*.md", ".", true}, {"*.md", "DATA/notes", true}, {"a.md", "notes", true},
		{"a?.md", "notes", true}, {"*.go", "SRC", true}, {"*.md", "in", true}, {"*.md", "none", true},
		{"*.md", "", true}, {"**/*.md", "", true}, {"**/*.md", ".", true}, {"*/x.md", "", true}, {"s*/x.md", "", true}, {"STATE/*.md", "", true},
		{"stat?/x.md", "", true}, {"**/x/*.md", "", true}, {"*.md", "state", false}, {"*.md", "notes/up", false}, {"*.md", "notes/here", true},
		{"../*.md", "notes", false}, {"/etc/*.md", "notes", false}, {"{a,b}.md", "notes", false}, {"[a].md", "notes", false}, {"!*.md", "notes", false},
		{"*.txt *.md", "notes", false}, {"*.txt,*.md", "notes", false}, {"*.txt", "notes", false}, {"*", "notes", false}, {"**", "notes", false},
		{"**/*", "notes", false}, {"notes/**", "", false}, {"*.m?", "notes", false}, {"*.m*", "notes", false}, {"*.md?", "notes", false},
		{"*.go", "LIB", false}, {"*.md", "SRC", false}, {"*.md", "link", false}, {"*.md", "/", false}, {"*.md", "notes/a.md", false}, {"", "notes", false},
		{"*.md", "notes/", false}, {"~/*.md", "", false}, {"a\\b.md", "notes", false}, {"*.md\n", "notes", false}, {"a**b.md", "notes", false},
	} {
		expect(t, p, c.allow, "Glob", glob(c.pattern, c.path))
	}
	for _, c := range []struct {
		glob, path string
		allow      bool
	}{
		{"*.md", "notes", true}, {"**/*.md", "notes", true}, {"", "notes/a.md", true}, {"*.txt", "notes/a.md", true}, {"", "LIB", true}, {"*.go", "LIB", true},
		{"", "alias.md", true}, {"", "", false}, {"", ".", false}, {"*.md", "", true}, {"", "notes", false}, {"*.txt", "notes", false}, {"", "notes/b.txt", false},
		{"deep/*.md", "notes", false}, {"", "state", false}, {"", "state/x.md", false}, {"", "cfg.md", false}, {"", "hard.md", false}, {"*.md", "TOP", false},
		{"!*.md", "LIB", false}, {"", "link", false}, {"*.md", "dangling.md", false}, {"", "/etc/passwd", false},
	} {
		expect(t, p, c.allow, "Grep", grep(c.glob, c.path))
	}
	expect(t, p, true, "Grep", object(t, "pattern", "-x", "path", "notes", "glob", "*.md", "type", "md", "-A", 3, "-n", true, "output_mode", "content"))
	expect(t, p, false, "Grep", object(t, "pattern", "x", "path", "notes", "glob", "*.md", "type", "--pre=id"))
	expect(t, p, false, "Grep", object(t, "pattern", "x", "path", "notes", "glob", "*.md", "follow", true))
	expect(t, p, false, "Grep", object(t, "pattern", "x", "path", nil, "glob", "*.md"))
	expect(t, p, false, "Glob", json.RawMessage(`{"pattern":"*.md","path":"notes","path":"state"}`))
	expect(t, p, false, "Glob", glob("**/*", ""))
	wide := h.policy(t, "Glob", "Grep", "Glob(TOP/**)")
	expect(t, wide, true, "Glob", glob("**/*", "notes"))
	expect(t, wide, true, "Grep", grep("", "SRC"))
	expect(t, wide, true, "Grep", grep("", "")) // the engine leaves out what is protected here, and only here
	wide.Roots = []policy.Root{{Dir: h.write}, {Dir: h.text("TOP")}}
	expect(t, wide, true, "Grep", grep("", ""))
	expect(t, wide, true, "Glob", glob("*.md", "DATA/notes"))
	expect(t, wide, false, "Glob", glob("*.md", "DATA"))
	expect(t, wide, false, "Grep", grep("", "TOP"))
	expect(t, wide, false, "Glob", glob("s.*", "TOP"))
	one := h.policy(t, "Glob(./*/*.md)")
	expect(t, one, true, "Glob", glob("notes/*.md", ""))
	expect(t, one, false, "Glob", glob("**/x.md", ""))
}

func TestOtherTools(t *testing.T) {
	h := newFixture(t)
	p := h.policy(t, "mcp__ollim__ping_user", "mcp__web", "mcp__db__get*", "mcp__all__*", "Skill(daily *)", "Skill(weekly)", "Task(reviewer)", "TodoWrite",
		"Oddity", "WebFetch(domain:example.com)", "WebFetch(domain:*.example.org)", "WebSearch")
	for _, c := range []struct {
		tool, input string
		allow       bool
	}{
		{"mcp__ollim__ping_user", `{"message":"x\ny"}`, true}, {"mcp__ollim__ping_user", `{}`, true}, {"mcp__ollim__ping_user", `{"a":1,"a":2}`, false},
		{"mcp__ollim__ping_user", `{"a":{"b":[{"c":1,"c":1}]}}`, false}, {"mcp__ollim__ping_user", `[]`, false},
		{"mcp__ollim__ping_user", `{"a":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}`, true},
		{"mcp__ollim__ping_user", `{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, false}, {"mcp__ollim__ping_user", `{"a":[1}`, false},
		{"mcp__ollim__ping_user", `{"a":[1`, false}, {"mcp__ollim__ping_user", `{"a"`, false}, {"mcp__ollim__ping_user", `{1:2}`, false},
		{"mcp__ollim__ping_user2", `{}`, false}, {"mcp__ollim__ping", `{}`, false}, {"mcp__ollim", `{}`, false}, {"mcp__OLLIM__ping_user", `{}`, false},
		{"mcp__web__x", `{}`, true}, {"mcp__web__", `{}`, false}, {"mcp__webx__x", `{}`, false}, {"mcp__web__x__y", `{}`, false},
		{"mcp__db__get_one", `{}`, true}, {"mcp__db__set", `{}`, false}, {"mcp__all__x", `{}`, true}, {"mcp__all__x*", `{}`, false},
		{"Oddity", `{"x":1}`, true}, {"Odd", `{}`, false}, {"oddity", `{}`, false}, {"Oddity ", `{}`, false}, {"", `{}`, false}, {"Read", `{"file_path":"top.md"}`, false},
		{"Bash", `{"command":"ollim help"}`, false}, {"Oddity\n", `{}`, false}, {strings.Repeat("x", 5000), `{}`, false},
		{"TodoWrite", `{"todos":[]}`, true}, {"WebSearch", `{"query":"x"}`, true}, {"WebSearch", `{"query":"x","url":"y"}`, false},
		{"Skill", `{"skill":"daily"}`, true}, {"Skill", `{"skill":"daily","args":"a; b\nc"}`, true}, {"Skill", `{"command":"/daily"}`, false},
		{"Skill", `{"skill":"weekly"}`, true}, {"Skill", `{"skill":"weekly","args":"x"}`, false}, {"Skill", `{"skill":"dailyx"}`, false},
		{"Skill", `{"skill":"daily","command":"daily"}`, false}, {"Skill", `{}`, false}, {"Skill", `{"skill":"../daily"}`, false},
		{"Skill", "{\"skill\":\"daily\",\"args\":\"!`id`\"}", false}, {"Skill", `{"skill":"daily x"}`, false}, {"Skill", `{"skill":""}`, false},
		{"Task", `{"prompt":"x","subagent_type":"reviewer"}`, true}, {"Agent", `{"prompt":"x","subagent_type":"reviewer","description":"d"}`, true},
		{"Agent", `{"prompt":"x","subagent_type":"other"}`, false}, {"Agent", `{"prompt":"x"}`, false},
		{"Agent", `{"prompt":"x","subagent_type":"reviewer","mode":"bypassPermissions"}`, false},
		{"Agent", `{"prompt":"x","subagent_type":"reviewer","run_in_background":true}`, false},
	} {
		expect(t, p, c.allow, c.tool, json.RawMessage(c.input))
	}
	for address, allow := range map[string]bool{
		"https://example.com/x?y#z": true, "http://EXAMPLE.com:8080": true, "https://a.example.org": true, "https://example.com./": true,
		"https://example.org": false, "https://example.com.evil.org": false, "https://evil.org/example.com": false, "https://example.com@evil.org": false, "http://x@example.com": false, "https://x@example.com": false,
		"https://evil.org\\@example.com": false, "ftp://example.com": false, "file:///etc/passwd": false, "example.com": false, "": false,
		"https://evil.org#@example.com": false, "https://example.com\n.evil.org": false, "https:///example.com": false, "https://[::1]": false,
		"https://exa%6dple.com": false, "HTTPS://example.com": false,
	} {
		expect(t, p, allow, "WebFetch", object(t, "url", address, "prompt", "x"))
	}
	wide := h.policy(t, "WebFetch", "Skill", "Task", "mcp__ollim")
	for address, allow := range map[string]bool{
		"https://go.dev": true, "http://localhost:8420": false, "http://a.localhost": false, "http://127.0.0.1": false, "http://127.1": false,
		"http://0x7f.0.0.1": false, "http://0x7f000001": false, "http://2130706433": false, "http://[::1]": false, "http://169.254.169.254/latest": false,
		"http://10.0.0.1": false, "http://[::ffff:127.0.0.1]": false, "http://router": false, "http://metadata.google.internal": false, "http://printer.local": false,
		"http://é.example": false, "http://localhost.": false,
	} {
		expect(t, wide, allow, "WebFetch", object(t, "url", address))
	}
	expect(t, wide, true, "Skill", object(t, "skill", "any", "args", "x"))
	expect(t, wide, false, "Skill", object(t, "skill", "any", "command", "any"))
	expect(t, wide, true, "Agent", object(t, "prompt", "x"))
	expect(t, policy.Policy{}, false, "Read", object(t, "file_path", "x"))
	expect(t, policy.Policy{Allow: make([]policy.Pattern, 1)}, false, "", object(t))
}

func TestInputLimits(t *testing.T) {
	p := newFixture(t).policy(t, "Write(./**.md)")
	expect(t, p, true, "Write", object(t, "file_path", "x.md", "content", strings.Repeat("a\n\x00", 1<<20)))
	expect(t, p, false, "Write", object(t, "file_path", "x.md", "content", strings.Repeat("a", 17<<20)))
	expect(t, p, false, "Write", json.RawMessage("{\"file_path\":\"x.md\",\"content\":\"\xff\"}"))
}
