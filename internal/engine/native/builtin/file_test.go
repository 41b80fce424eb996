package builtin

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"unicode/utf8"

	"github.com/ollim/ollim/internal/policy"

	"pgregory.net/rapid"
)

func TestRead(t *testing.T) {
	h := newFixture(t)
	long := strings.Repeat("é", 2500)
	for name, text := range map[string]string{
		"empty": "", "nonl": "x", "crlf": "a\r\nb\r\n", "bom": "\ufeffa\n", "onlybom": "\ufeff", "long": long + "\nnext\n", "exact": strings.Repeat("y", 2000) + "\n",
		"bin": "a\x00b", "latin": "ok\ncaf\xe9\n", "png": "\x89PNG\r\n\x1a\n\x00\x00", "pdf": "%PDF-1.4\n\x00", "many": strings.Repeat("l\n", 2500),
		"wide": strings.Repeat(strings.Repeat("w", 1999)+"\n", 300), "latenul": strings.Repeat("x\n", 9000) + "\x00", "huge": strings.Repeat("z", 3<<20) + "\nend\n",
		"broken": strings.Repeat("x", 7999) + "é" + strings.Repeat("x", 100) + "\n", "a \"b\"": "q\n",
	} {
		h.put(t, "data/"+name, text)
	}
	for _, c := range []struct {
		name          string
		offset, limit int
		want          string
	}{
		{"notes/a.md", 0, 0, "     1\talpha\n     2\tbeta\n     3\tgamma\n"}, {"notes/a.md", 2, 1, "     2\tbeta\n(the file continues; read it from offset 3)"},
		{"notes/a.md", 3, 5, "     3\tgamma\n"}, {"nonl", 1, 1, "     1\tx\n"}, {"crlf", 0, 0, "     1\ta\n     2\tb\n"}, {"bom", 0, 0, "     1\ta\n"},
		{"empty", 0, 0, "(the file is empty)"}, {"empty", 5, 0, "(the file is empty)"}, {"onlybom", 0, 0, "(the file is empty)"},
		{"long", 0, 0, "     1\t" + strings.Repeat("é", 2000) + "… (line cut)\n     2\tnext\n"}, {"exact", 0, 0, "     1\t" + strings.Repeat("y", 2000) + "\n"},
		{"huge", 2, 1, "     2\tend\n"}, {"huge", 1, 1, "     1\t" + strings.Repeat("z", 2000) + "… (line cut)\n(the file continues; read it from offset 2)"},
		{"latin", 1, 1, "     1\tok\n(the file continues; read it from offset 2)"}, {"broken", 1, 1, "     1\t" + strings.Repeat("x", 2000) + "… (line cut)\n"},
		{filepath.Join(h.dir, "top.md"), 0, 0, "     1\ttop\n"}, {"alias.md", 1, 1, "     1\talpha\n(the file continues; read it from offset 2)"},
		{"abs.md", 3, 0, "     3\tgamma\n"}, {"in/a.md", 3, 0, "     3\tgamma\n"}, {"mylib/l.md", 0, 0, "     1\talpha lib\n"}, {h.lib + "/l.md", 0, 0, "     1\talpha lib\n"},
		{"notes/up/top.md", 0, 0, "     1\ttop\n"}, {"inner/i.md", 0, 0, "     1\talpha inner\n"}, {`a "b"`, 0, 0, "     1\tq\n"},
	} {
		kv := []any{"file_path", c.name}
		if c.offset > 0 {
			kv = append(kv, "offset", c.offset)
		}
		if c.limit > 0 {
			kv = append(kv, "limit", c.limit)
		}
		got := h.good(t, "Read", kv...)
		if got != c.want {
			t.Errorf("%v: %.200q, want %.200q", kv, got, c.want)
		}
	}
	if got := h.good(t, "Read", "file_path", "many"); strings.Count(got, "\n") != 2000 || !strings.HasSuffix(got, "offset 2001)") {
		t.Errorf("%d lines, %q", strings.Count(got, "\n"), got[len(got)-50:])
	}
	if got := h.good(t, "Read", "file_path", "wide"); len(got) > readBytes+100 || len(got) < readBytes-3000 || !strings.HasSuffix(got, fmt.Sprintf("offset %d)", strings.Count(got, "\n")+1)) {
		t.Errorf("%d bytes, %q", len(got), got[len(got)-50:])
	}
	for name, words := range map[string]string{
		"bin": "not UTF-8 text but application/octet-stream", "png": "begins as image/png and cannot be read as such", "latin": "line 2 is not UTF-8 text",
		"notes": "notes: it is a directory", ".": "it is a directory", "nope.md": "nope.md: no such file", "notes/nope/x.md": "no such file", "top.md/x": "cannot be followed",
	} {
		h.bad(t, words, "Read", "file_path", name)
	}
	h.bad(t, "not UTF-8 text", "Read", "file_path", "latenul", "offset", 9000)
	h.bad(t, "offset 9 is past the end of the file; it has 3 lines", "Read", "file_path", "notes/a.md", "offset", 9)
}

// Nothing leads out: not by .., not by a link in any position, not by another spelling.
func TestEscapes(t *testing.T) {
	h := newFixture(t)
	paths := []string{
		"../out/o.md", "notes/../../out/o.md", "out/o.md", "out/new.md", "out.md", "dangling.md", h.top + "/out/o.md", "/etc/passwd", "loop", "loop/x.md",
		"notes/up/out/o.md", "notes/up/../../out/o.md", "~/x.md", "", ".", "/", "notes/", "a\x00b", "a\nb", `notes\a.md`, "/proc/self/environ", "/dev/null",
		"state/x.md", "STATE/x.md", "State/new.md", "st/x.md", "notes/up/state/x.md", "in/up/st/x.md", "config.yaml", "Config.YAML", "cfg.md", "hard.md", "later", "later/x.md",
		"sessions/s.md", "state", strings.Repeat("a/", 200) + "x.md", strings.Repeat("n", 5000),
	}
	for _, path := range paths {
		h.bad(t, "", "Read", "file_path", path)
		h.bad(t, "", "Write", "file_path", path, "content", "x")
		h.bad(t, "", "Edit", "file_path", path, "old_string", "SECRET", "new_string", "x")
		h.bad(t, "", "Grep", "path", orDot(path), "pattern", ".", "output_mode", "content", "glob", "*.nothing")
		if path != "." {
			h.bad(t, "", "Glob", "path", path, "pattern", "*")
		}
	}
	for _, path := range []string{"mylib/l.md", h.lib + "/new.md", "inner/i.md", "inner/new/x.md"} { // may only be read
		h.bad(t, "read-only directory", "Write", "file_path", path, "content", "x")
		h.bad(t, "read-only directory", "Edit", "file_path", path, "old_string", "alpha", "new_string", "x")
	}
	h.untouched(t)
}

func orDot(path string) string {
	if path == "." || path == "" {
		return "out"
	}
	return path
}

// A pipe, a socket or a device is told, and nobody waits for it.
func TestNoRegularFile(t *testing.T) {
	h := newFixture(t)
	if err := syscall.Mkfifo(filepath.Join(h.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.bad(t, "it is a pipe, not a file", "Read", "file_path", "pipe")
	h.bad(t, "it is a pipe, not a file", "Write", "file_path", "pipe", "content", "x")
	h.bad(t, "it is a pipe, not a file", "Edit", "file_path", "pipe", "old_string", "a", "new_string", "b")
	if got := h.good(t, "Grep", "pattern", "top", "path", ".", "glob", "*"); got != "top.md" {
		t.Errorf("%q", got)
	}
	h.bad(t, "it is a pipe, not a directory", "Grep", "pattern", "x", "path", "pipe")
	if runtime.GOOS != "linux" {
		return
	}
	h.box = &Box{Roots: []policy.Root{{Dir: h.dir}, {Dir: "/dev"}, {Dir: "/proc/self"}}}
	h.allow(t, "Read(/dev/**)", "Read(/proc/self/**)")
	h.bad(t, "it is a device", "Read", "file_path", "/dev/zero")
	h.bad(t, "it is a device", "Read", "file_path", "/dev/tty")
	if got := h.good(t, "Read", "file_path", fmt.Sprintf("/proc/%d/status", os.Getpid()), "limit", 1); !strings.Contains(got, "Name:") { // its size is 0
		t.Errorf("%q", got)
	}
}

// What is swapped for a link after its path was looked at is not followed, in any position of the path.
func TestSwapped(t *testing.T) {
	for _, c := range []struct{ path, swap, to string }{
		{"notes/deep/er/c.md", "notes/deep/er/c.md", "../../../state/x.md"}, {"notes/deep/er/c.md", "notes/deep/er", "../../state"},
		{"notes/deep/er/c.md", "notes/deep", "../state"}, {"notes/deep/er/c.md", "notes", "state"}, {"notes/deep/er/c.md", "notes", "../out"},
		{"notes/a.md", "notes", "sessions"}, {"notes/a.md", "notes/a.md", "b.txt"}, {"notes/a.md", "notes", "inner"},
	} {
		h := newFixture(t)
		s, err := h.box.spot(c.path, toRead)
		if err != nil {
			t.Fatal(err)
		}
		swapped := filepath.Join(h.dir, c.swap)
		if err := os.Rename(swapped, filepath.Join(h.top, "aside")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(c.to, swapped); err != nil {
			t.Fatal(err)
		}
		if dir, err := h.box.enter(s.g, "Write", s.place, nil, filepath.Dir(s.place.Real), 0o700); err == nil {
			if f, _, err := openFile(s.g, dir, s.name, s.place.Real); err == nil {
				t.Errorf("%s with %s a link: opened %s", c.path, c.swap, f.Name())
			}
			w := spot{dir: dir, name: s.name, place: s.place, g: s.g}
			if err := w.replace(t.Context(), []byte("x"), nil); err == nil {
				t.Errorf("%s with %s a link: written", c.path, c.swap)
			}
		}
		h.untouched(t)
	}
}

// A protected directory under another name is known by what it is.
func TestMovedIn(t *testing.T) {
	h := newFixture(t)
	s, err := h.box.spot("notes/a.md", toRead)
	if err != nil {
		t.Fatal(err)
	}
	for _, move := range [][2]string{{"notes", "aside"}, {"state", "notes"}} {
		if err := os.Rename(filepath.Join(h.dir, move[0]), filepath.Join(h.dir, move[1])); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.box.enter(s.g, "Read", s.place, nil, filepath.Dir(s.place.Real), 0); !errors.Is(err, errProtected) {
		t.Error(err)
	}
}

// Whoever swaps directories and links without end never gets a tool to read or write elsewhere.
func TestSwapping(t *testing.T) {
	h := newFixture(t)
	h.put(t, "data/w/f.md", "fine\n")
	if err := os.Symlink("state", filepath.Join(h.dir, "evil")); err != nil {
		t.Fatal(err)
	}
	h.put(t, "data/state/f.md", "SECRET\n")
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		at := func(name string) string { return filepath.Join(h.dir, name) }
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(at("w"), at("good"))
			_ = os.Rename(at("evil"), at("w"))
			_ = os.Rename(at("w"), at("evil"))
			_ = os.Rename(at("good"), at("w"))
		}
	})
	for range 50 {
		for _, r := range []string{
			h.call(t, "Read", "file_path", "w/f.md").Text, h.call(t, "Grep", "pattern", ".", "path", "w", "output_mode", "content").Text,
			h.call(t, "Edit", "file_path", "w/f.md", "old_string", "e\n", "new_string", "e\n.\n").Text,
			h.call(t, "Edit", "file_path", "w/f.md", "old_string", ".\n", "new_string", "", "replace_all", true).Text,
		} {
			if strings.Contains(r, "SECRET") {
				t.Fatal(r)
			}
		}
		_ = h.call(t, "Write", "file_path", "w/g.md", "content", "fine\n")
	}
	close(stop)
	done.Wait()
	if got := h.get("data/state/f.md"); got != "SECRET\n" {
		t.Errorf("%q", got)
	}
	if _, err := os.Lstat(filepath.Join(h.dir, "state/g.md")); err == nil {
		t.Error("written into a protected place")
	}
}

func TestWrite(t *testing.T) {
	h := newFixture(t)
	if err := os.Chmod(filepath.Join(h.dir, "top.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{"new.md", "data/new.md", "Wrote new.md (new, 5 bytes)."}, {"x/y/z.md", "data/x/y/z.md", "Wrote x/y/z.md (new, 5 bytes)."},
		{"top.md", "data/top.md", "Wrote top.md (replaced, 5 bytes)."}, {"alias.md", "data/notes/a.md", "Wrote notes/a.md (replaced, 5 bytes)."},
		{"abs.md", "data/notes/a.md", "Wrote notes/a.md (replaced, 5 bytes)."}, {"in/b.txt", "data/notes/b.txt", "Wrote notes/b.txt (replaced, 5 bytes)."},
		{h.src + "/s.md", "src/s.md", "Wrote " + h.src + "/s.md (replaced, 5 bytes)."}, {"notes/up/q.md", "data/q.md", "Wrote q.md (new, 5 bytes)."},
	} {
		if got := h.good(t, "Write", "file_path", c[0], "content", "héy\n"); got != c[2] || h.get(c[1]) != "héy\n" {
			t.Errorf("%s: %q, %q", c[0], got, h.get(c[1]))
		}
	}
	for path, want := range map[string]os.FileMode{"new.md": 0o600, "x": 0o700 | os.ModeDir, "x/y": 0o700 | os.ModeDir, "top.md": 0o755, "alias.md": os.ModeSymlink | 0o777} {
		if info, err := os.Lstat(filepath.Join(h.dir, path)); err != nil || info.Mode() != want && info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if err := os.Chmod(filepath.Join(h.dir, "top.md"), 0o400); err != nil {
		t.Fatal(err)
	}
	h.bad(t, "read-only", "Write", "file_path", "top.md", "content", "x")
	h.bad(t, "notes: it is a directory", "Write", "file_path", "notes", "content", "x")
	h.bad(t, "cannot be followed", "Write", "file_path", "none.md", "content", "x")
	name := strings.Repeat("ü", 127)
	h.good(t, "Write", "file_path", name, "content", "")
	h.bad(t, "cannot be followed", "Write", "file_path", strings.Repeat("u", 256), "content", "")
	if left, _ := filepath.Glob(filepath.Join(h.dir, ".*.tmp-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	h.untouched(t)
}

// A draft that a killed writer left does not stop the next one, and a file that changes meanwhile is not overwritten.
func TestReplace(t *testing.T) {
	h := newFixture(t)
	h.put(t, "data/.top.md.tmp-0", "half")
	h.good(t, "Write", "file_path", "top.md", "content", "new")
	if h.get("data/.top.md.tmp-0") != "half" || h.get("data/top.md") != "new" {
		t.Error("the draft of another")
	}
	s, err := h.box.spot("top.md", toEdit)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.dir.Close() }()
	was, err := look(s.g, s.dir, s.name, s.place.Real)
	if err != nil {
		t.Fatal(err)
	}
	h.put(t, "data/top.md", "by another")
	for _, before := range []os.FileInfo{was, nil} {
		if err := s.replace(t.Context(), []byte("mine"), before); err == nil || h.get("data/top.md") != "by another" {
			t.Errorf("%v, %q", err, h.get("data/top.md"))
		}
	}
	if err := os.Remove(filepath.Join(h.dir, "top.md")); err != nil {
		t.Fatal(err)
	}
	if err := s.replace(t.Context(), []byte("mine"), was); err == nil {
		t.Error("a file that is gone was replaced")
	}
	if left, _ := filepath.Glob(filepath.Join(h.dir, ".top.md.tmp-[1-9]")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestEdit(t *testing.T) {
	h := newFixture(t)
	for _, c := range []struct {
		text, old, new string
		all            bool
		want, says     string
	}{
		{"a\nb\nc\n", "b", "B", false, "a\nB\nc\n", "Edited e.md: 1 place, line 2."}, {"x\ny x\n", "x", "z", true, "z\ny z\n", "Edited e.md: 2 places, lines 1, 2."},
		{"a\r\nb\r\n", "a\nb", "c\nd\ne", false, "c\r\nd\r\ne\r\n", ""}, {"a\r\nb\r\n", "a\r\nb", "c\r\nd", false, "c\r\nd\r\n", ""},
		{"a\r\nb\nc\n", "b\nc", "d\ne", false, "a\r\nd\ne\n", ""}, {"aaaa", "aa", "b", true, "bb", ""}, {"$1 x", "$1", "$2", false, "$2 x", ""},
		{"one", "one", "", false, "", ""}, {"\ufeffa\n", "a", "b", false, "\ufeffb\n", ""}, {strings.Repeat("x\n", 12), "x", "y", true, strings.Repeat("y\n", 12), "Edited e.md: 12 places, lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …."},
	} {
		h.put(t, "data/e.md", c.text)
		got := h.good(t, "Edit", "file_path", "e.md", "old_string", c.old, "new_string", c.new, "replace_all", c.all)
		if h.get("data/e.md") != c.want || c.says != "" && got != c.says {
			t.Errorf("%q: %q, %q", c.text, h.get("data/e.md"), got)
		}
	}
	h.put(t, "data/e.md", "x x\r\ny\n")
	for words, kv := range map[string][]any{
		"found 2 times": {"old_string", "x", "new_string", "z"}, "match exactly": {"old_string", "q", "new_string", "z"}, "are the same": {"old_string", "x x", "new_string", "x x"},
		"old_string is empty": {"old_string", "", "new_string", "z"}, "some lines of the file end": {"old_string", "x\ny", "new_string", "z"},
	} {
		h.bad(t, words, "Edit", append(kv, "file_path", "e.md")...)
	}
	for words, text := range map[string]string{"not UTF-8 text": "x\xff", "application/octet-stream": "x\x00", "larger than 16 MiB": strings.Repeat("x", editBytes+1)} {
		h.put(t, "data/e.md", text)
		h.bad(t, words, "Edit", "file_path", "e.md", "old_string", "x", "new_string", "y")
	}
	h.bad(t, "no such file", "Edit", "file_path", "no/such.md", "old_string", "x", "new_string", "y")
	if _, err := os.Lstat(filepath.Join(h.dir, "no")); err == nil {
		t.Error("Edit made a folder")
	}
}

// Edits of one file at the same time are all made.
func TestEditsAtOnce(t *testing.T) {
	h := newFixture(t)
	h.put(t, "data/e.md", "0 1 2 3 4 5 6 7 8 9 ")
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			h.good(t, "Edit", "file_path", "e.md", "old_string", fmt.Sprintf("%d ", i), "new_string", "x ")
		})
	}
	all.Wait()
	if got := h.get("data/e.md"); got != strings.Repeat("x ", 10) {
		t.Errorf("%q", got)
	}
}

// An edit and its reverse leave the file as it was, if new_string was not in it before.
func TestEditRoundTrip(t *testing.T) {
	piece := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n\r é$")), 0, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		text, old, mark := piece.Draw(t, "before")+"OLD\nOLD"+piece.Draw(t, "after"), "OLD\nOLD", "«new\n»"
		if rapid.Bool().Draw(t, "crlf") {
			text = crlf(strings.ReplaceAll(text, "\r", ""))
		}
		there, _, err := edited(text, old, mark, false)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := edited(there, mark, old, false)
		if err != nil || back != text {
			t.Fatalf("%q, %q, %q: %v", text, there, back, err)
		}
	})
}

// Whatever the file, the offset and the limit: no panic, no more than the bounds, and page after page is the whole file.
func TestReadPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 40),
			rapid.Map(rapid.StringOfN(rapid.SampledFrom([]rune("ab\n\r é😀")), 0, 60, -1), func(s string) []byte { return []byte(s) })).Draw(t, "data")
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		for first := 1; ; {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			text, err := readPage(t.Context(), f, first, limit)
			_ = f.Close()
			if err != nil {
				if utf8.Valid(data) && !bytes.Contains(data, []byte{0}) {
					t.Fatalf("%q from %d: %v", data, first, err)
				}
				return
			}
			body, more, _ := strings.Cut(text, "(the file continues")
			for line := range strings.Lines(body) {
				if _, line, ok := strings.Cut(line, "\t"); ok {
					got = append(got, strings.TrimSuffix(line, "\n"))
					first++
				}
			}
			if more == "" {
				break
			}
		}
		var want []string
		for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
			want = append(want, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("%q: %q, want %q", data, got, want)
		}
	})
}
