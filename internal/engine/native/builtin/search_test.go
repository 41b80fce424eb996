package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/testkit"
)

func TestGlob(t *testing.T) {
	h := newFixture(t)
	h.put(t, "data/notes/new\nline.md", "alpha\n")
	for i, name := range []string{"data/top.md", "data/notes/a.md", "data/notes/deep/er/c.md", "data/notes/.hidden.md", "data/state.md", "data/inner/i.md", "data/notes/b.txt", "data/notes/new\nline.md"} {
		at := time.Unix(1_700_000_000-int64(i), 0)
		if err := os.Chtimes(filepath.Join(h.top, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ pattern, path, want string }{
		{"*.md", "", `top.md notes/a.md notes/deep/er/c.md notes/.hidden.md state.md inner/i.md "notes/new\nline.md"`},
		{"**/*.md", "notes", `notes/a.md notes/deep/er/c.md notes/.hidden.md "notes/new\nline.md"`}, {"./*.md", "", "top.md state.md"},
		{"*/a.md", "", "notes/a.md"}, {"notes/**", "", `notes/a.md notes/deep/er/c.md notes/.hidden.md notes/b.txt "notes/new\nline.md"`},
		{"?.md", "", "notes/a.md notes/deep/er/c.md inner/i.md"}, {"b.*", "", "notes/b.txt"}, {"c.md", "in", "notes/deep/er/c.md"},
		{"deep/**/c.md", "notes", "notes/deep/er/c.md"}, {"**/er/*", "", "notes/deep/er/c.md"}, {"*.md", "mylib", h.lib + "/l.md"},
		{"*.MD", "", "(no file found)"}, {"x.md", "", "(no file found)"}, {"config.*", "", "(no file found)"}, {"state/**", "", "(no file found)"},
		{".git/*", "notes", "(no file found)"}, {"*", "notes/.git", "notes/.git/hook.md"}, {"out/*", "", "(no file found)"}, {"link.md", "", "(no file found)"},
		{"hard.md", "", "(no file found)"}, {"**.txt", "", "notes/b.txt"},
	} {
		kv := []any{"pattern", c.pattern}
		if c.path != "" {
			kv = append(kv, "path", c.path)
		}
		if got := strings.ReplaceAll(h.good(t, "Glob", kv...), "\n", " "); got != c.want && strings.ReplaceAll(got, "(no file found)", "") != c.want {
			t.Errorf("%s in %q: %s\nwant %s", c.pattern, c.path, got, c.want)
		}
	}
	h.bad(t, "it is a file, not a directory", "Glob", "pattern", "*", "path", "top.md")
	h.bad(t, "no such file", "Glob", "pattern", "*", "path", "nope")
	for i := range 250 {
		h.put(t, fmt.Sprintf("data/many/%d.x", i), "")
	}
	if got := h.good(t, "Glob", "pattern", "*.x"); strings.Count(got, "\n") != 200 || !strings.HasSuffix(got, "(the newest 200 of 250 files)") {
		t.Errorf("%q", got[len(got)-60:])
	}
}

func TestGrep(t *testing.T) {
	h := newFixture(t)
	h.put(t, "data/g/one.txt", "1\n2 hit\n3\n4\n5\n6 hit hit\n7 hit\n8\n9")
	h.put(t, "data/g/two.go", "package two\r\n// hit\r\n")
	h.put(t, "data/g/bin.txt", "hit\x00\n")
	h.put(t, "data/g/wide.json", strings.Repeat("x", 700)+" hit\n")
	h.put(t, "data/g/latin.csv", "caf\xe9 Hit\n")
	for _, c := range []struct {
		kv   []any
		want string
	}{
		{[]any{"pattern", "alpha"}, "inner/i.md notes/.hidden.md notes/a.md notes/deep/er/c.md state.md"}, {[]any{"pattern", "alpha", "glob", "*.txt"}, "(no match)"},
		{[]any{"pattern", "alpha", "path", "notes", "glob", "**/?.md"}, "notes/a.md notes/deep/er/c.md"}, {[]any{"pattern", "alpha", "path", "mylib"}, h.lib + "/l.md"},
		{[]any{"pattern", "beta", "type", "md"}, "notes/a.md"}, {[]any{"pattern", "beta", "type", "txt"}, "notes/b.txt"}, {[]any{"pattern", "BETA"}, "(no match)"},
		{[]any{"pattern", "BETA", "-i", true, "output_mode", "content"}, "notes/a.md:2:beta notes/b.txt:1:beta"},
		{[]any{"pattern", "hit", "path", "g", "output_mode", "count"}, "g/one.txt:3 g/two.go:1 g/wide.json:1"},
		{[]any{"pattern", "hit$", "path", "g/two.go", "output_mode", "content", "-n", false}, "g/two.go:// hit"},
		{[]any{"pattern", "h.t", "path", "g/one.txt", "output_mode", "content", "-o", true}, "g/one.txt:2:hit g/one.txt:6:hit g/one.txt:6:hit g/one.txt:7:hit"},
		{[]any{"pattern", "hit", "path", "g/one.txt", "output_mode", "content", "-C", 1}, "g/one.txt-1-1 g/one.txt:2:2 hit g/one.txt-3-3 -- g/one.txt-5-5 g/one.txt:6:6 hit hit g/one.txt:7:7 hit g/one.txt-8-8"},
		{[]any{"pattern", "hit", "path", "g/one.txt", "output_mode", "content", "-A", 3, "-B", 0}, "g/one.txt:2:2 hit g/one.txt-3-3 g/one.txt-4-4 g/one.txt-5-5 g/one.txt:6:6 hit hit g/one.txt:7:7 hit g/one.txt-8-8 g/one.txt-9-9"},
		{[]any{"pattern", "hit", "path", "g/one.txt", "output_mode", "content", "context", 2, "-A", 0}, "g/one.txt-1-1 g/one.txt:2:2 hit -- g/one.txt-4-4 g/one.txt-5-5 g/one.txt:6:6 hit hit g/one.txt:7:7 hit"},
		{[]any{"pattern", "2.*4", "path", "g", "multiline", true, "output_mode", "content"}, "g/one.txt:2:2 hit g/one.txt:3:3 g/one.txt:4:4"},
		{[]any{"pattern", "2.*4", "path", "g"}, "(no match)"}, {[]any{"pattern", "^5$\n^6", "path", "g", "multiline", true, "output_mode", "count"}, "g/one.txt:1"},
		{[]any{"pattern", "alpha", "head_limit", 2}, "inner/i.md notes/.hidden.md (more results follow; continue with offset 2)"}, {[]any{"pattern", "alpha", "head_limit", 2, "offset", 3}, "notes/deep/er/c.md state.md"},
		{[]any{"pattern", "alpha", "offset", 9}, "(offset 9 is past the end of 5 lines)"}, {[]any{"pattern", "SECRET"}, "(no match)"}, {[]any{"pattern", "SECRET", "path", "notes/up"}, "(no match)"},
		{[]any{"pattern", "hit", "path", "g/wide.json", "output_mode", "content"}, "g/wide.json:1:" + strings.Repeat("x", 500) + "… (line cut)"},
		{[]any{"pattern", "Hit", "path", "g", "output_mode", "content"}, "g/latin.csv:1:caf\ufffd Hit"}, {[]any{"pattern", "", "path", "g/two.go", "output_mode", "count", "multiline", true}, "g/two.go:21"},
		{[]any{"pattern", "git", "path", "notes/.git"}, "notes/.git/hook.md"}, {[]any{"pattern", "x*", "path", "top.md", "output_mode", "content", "-o", true}, "(no match)"},
	} {
		if got := strings.ReplaceAll(h.good(t, "Grep", c.kv...), "\n", " "); got != c.want {
			t.Errorf("%v:\n%s\nwant %s", c.kv, got, c.want)
		}
	}
	for words, pattern := range map[string]string{
		"missing closing": "(a", "too complicated": strings.Repeat(".{900}", 3), "longer than": strings.Repeat("a", 5000), "invalid repeat": "(a{900}){900}", "unexpected )": "a)(?:b",
	} {
		h.bad(t, words, "Grep", "pattern", pattern)
	}
}

func TestGrepBounds(t *testing.T) {
	h := newFixture(t)
	h.put(t, "data/big/a.log", strings.Repeat("line with hit\n", 5000))
	h.put(t, "data/big/b.log", strings.Repeat("x", grepBytes+1))
	got := h.good(t, "Grep", "pattern", "hit", "output_mode", "content", "path", "big")
	if len(got) > grepChars+300 || len(got) < grepChars-300 || !strings.Contains(got, "cut at 20000 characters; continue with offset") {
		t.Errorf("%d: %q", len(got), got[len(got)-200:])
	}
	seen, offset := 0, 0
	for page := got; ; page = h.good(t, "Grep", "pattern", "hit", "output_mode", "content", "path", "big", "offset", offset) {
		n := strings.Count(page, "line with hit")
		seen, offset = seen+n, offset+n
		if !strings.Contains(page, "continue with offset "+fmt.Sprint(offset)) {
			break
		}
	}
	if seen != 5000 {
		t.Errorf("page after page %d of 5000", seen)
	}
	if got := h.good(t, "Grep", "pattern", "nothing", "path", "big"); got != "(no match)\n(not searched, larger than 16 MiB: big/b.log)" {
		t.Errorf("%q", got)
	}
	h.put(t, "data/digits/a.log", strings.Repeat("x", 25_000)+"123\n"+strings.Repeat("abcdefghi\n", 2500)+"456\n")
	if got := h.good(t, "Grep", "pattern", "[0-9]*", "output_mode", "content", "path", "digits", "-o", true); got != "digits/a.log:1:123\ndigits/a.log:2502:456" {
		t.Errorf("%.300q", got)
	}
	h.put(t, "data/wide/a.log", strings.Repeat("hit ", 3<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got = h.good(t, "Grep", "pattern", "hit", "output_mode", "content", "path", "wide", "-o", true, "offset", 1000)
	if runtime.ReadMemStats(&after); strings.Count(got, "hit") < 1000 || after.TotalAlloc-before.TotalAlloc > 100<<20 {
		t.Errorf("%d bytes for %.100q", after.TotalAlloc-before.TotalAlloc, got)
	}
}

func TestGrepUnreadableFolder(t *testing.T) {
	if !testkit.Unprivileged(t) {
		return
	}
	h := newFixture(t)
	h.put(t, "data/big/a.md", "top\n")
	big := filepath.Join(h.dir, "big")
	if err := os.Chmod(big, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(big, 0o700) }()
	if got := h.good(t, "Grep", "pattern", "top"); got != "top.md\n(1 directory could not be read)" {
		t.Errorf("%q", got)
	}
}

// A search comes back when it is stopped, in the middle of one match that takes very long too.
func TestGrepStopped(t *testing.T) {
	h := newFixture(t)
	h.put(t, "data/z/long.txt", strings.Repeat("ab", 2_000_000))
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer stop()
	r := h.box.Call(ctx, "Grep", object(t, "pattern", "(?:"+strings.Repeat("(?:a|b|ab){0,9}", 20)+")*c", "path", "z"))
	if !r.IsError {
		t.Errorf("%+v", r)
	}
}

// What a search finds is what the policy has judged: a file that is found is covered by the pattern that the search's own text
// makes, and nothing of a protected place is found.
func FuzzSearch(f *testing.F) {
	for _, s := range [][2]string{{"*.md", "."}, {"**", "notes"}, {"s?ate/*", "."}, {"**/x.md", "."}, {"*/*", "in"}, {"c*.yaml", "."}, {"STATE/**", "notes/up"}, {"[a]", "/"}, {"a\\*", "."}, {"**/**/?", "."}, {"***", "."}} {
		f.Add(s[0], s[1])
	}
	h := newFixture(f)
	f.Fuzz(func(t *testing.T, pattern, path string) {
		glob := h.box.Call(t.Context(), "Glob", object(t, "pattern", pattern, "path", path))
		grep := h.box.Call(t.Context(), "Grep", object(t, "pattern", ".", "glob", pattern, "path", path))
		for _, r := range []string{glob.Text, grep.Text} {
			if r == "" || !glob.IsError && !grep.IsError && strings.Contains(r, "\n\n") {
				t.Fatalf("%q", r)
			}
		}
		_ = h.box.Call(t.Context(), "Grep", object(t, "pattern", pattern, "output_mode", "content", "multiline", true, "-C", 1))
		if glob.IsError {
			return
		}
		for line := range strings.Lines(glob.Text) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "(") {
				continue
			}
			rules := policy.Policy{Roots: h.box.Roots, Protected: h.box.Protected}
			for _, text := range []string{"Read", "Read(./**)", "Read(" + h.lib + "/**)", "Read(" + h.src + "/**)"} {
				p, err := policy.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				rules.Allow = append(rules.Allow, p)
			}
			if v := rules.Decide("Read", object(t, "file_path", line)); !v.Allow {
				t.Fatalf("%q in %q finds %s: %s", pattern, path, line, v.Reason)
			}
		}
		var found []string
		if grep.IsError {
			return // a glob with a directory in it
		}
		for line := range strings.Lines(grep.Text) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "(") {
				found = append(found, line)
			}
		}
		globbed := strings.Split(glob.Text, "\n")
		for _, name := range found {
			if !slices.Contains(globbed, name) {
				t.Fatalf("%q in %q: Grep finds %s, Glob %q", pattern, path, name, globbed)
			}
		}
	})
}

// Every search that a policy allows finds only what that policy lets be read.
func TestSearchAgreesWithPolicy(t *testing.T) {
	h := newFixture(t)
	read := func(path string) json.RawMessage { return object(t, "file_path", path) }
	for _, scope := range []string{"./**.md", "./notes/*.md", "./notes/**", "./*/*.md", "./**/er/*", "./s*.md"} {
		rules := policy.Policy{Roots: h.box.Roots, Protected: h.box.Protected}
		for _, tool := range []string{"Read", "Glob", "Grep"} {
			p, err := policy.Parse(tool + "(" + scope + ")")
			if err != nil {
				t.Fatal(err)
			}
			rules.Allow = append(rules.Allow, p)
		}
		allowed := 0
		for _, pattern := range []string{"*.md", "**/*.md", "*", "./*.md", "notes/*.md", "a.md", "?.md", "*/*.md", "s*.md", "./s*.md", "**/er/*", "er/*", "c.*", "c.md"} {
			for _, path := range []string{".", "notes", "in", "notes/deep", "notes/deep/er"} {
				in := object(t, "pattern", pattern, "path", path)
				if !rules.Decide("Glob", in).Allow {
					continue
				}
				allowed++
				for line := range strings.Lines(h.good(t, "Glob", "pattern", pattern, "path", path)) {
					if line = strings.TrimSpace(line); !strings.HasPrefix(line, "(") && !rules.Decide("Read", read(line)).Allow {
						t.Errorf("%s allows %s in %s, which finds %s", scope, pattern, path, line)
					}
				}
			}
		}
		if allowed == 0 {
			t.Errorf("%s allows none", scope)
		}
	}
}
