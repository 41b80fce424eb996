package task

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNumbersAreLines(t *testing.T) {
	f := parseFile([]byte("\ufeff(A) one\r\n\r\n# two\nthree\n  \nx four"))
	var got []string
	for _, task := range f.tasks() {
		got = append(got, strings.Repeat("-", task.Number)+task.Priority+" "+task.Text)
	}
	if want := []string{"-A one", "---- three", "------ four"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAddToFile(t *testing.T) {
	for before, want := range map[string]struct {
		after  string
		number int
	}{
		"":             {"new\n", 1},
		"\ufeff":       {"\ufeffnew\n", 1},
		"a\n":          {"a\nnew\n", 2},
		"a":            {"a\nnew\n", 2},
		"a\r\nb":       {"a\r\nb\r\nnew\r\n", 3},
		"a\nb\r\n":     {"a\nb\r\nnew\r\n", 3},
		"a\n\n\n":      {"a\n\n\nnew\n", 4},
		"a\rb":         {"a\rb\nnew\n", 2},
		"a\r":          {"a\r\nnew\n", 2},
		"\xff\x00\n":   {"\xff\x00\nnew\n", 2},
		"\n":           {"\nnew\n", 2},
		"a\n\u2028b\n": {"a\n\u2028b\nnew\n", 3},
	} {
		f := parseFile([]byte(before))
		number := f.add("new")
		if got := string(f.bytes()); got != want.after || number != want.number {
			t.Errorf("%q: %q and %d, want %q and %d", before, got, number, want.after, want.number)
		}
	}
}

// What a change does not mean it does not touch, whatever the file holds.
func checkFile(t interface {
	Helper()
	Fatalf(string, ...any)
}, data string) {
	t.Helper()
	f := parseFile([]byte(data))
	if got := string(f.bytes()); got != data {
		t.Fatalf("%q became %q", data, got)
	}
	tasks, count := f.tasks(), len(f.lines)
	number := f.add("2026-03-04 new")
	after := string(f.bytes())
	if !strings.HasPrefix(after, data) || number != count+1 || len(strings.TrimRight(after[len(data):], "\r\n")) > len("\r\n2026-03-04 new") {
		t.Fatalf("add: %q became %q", data, after)
	}
	for _, old := range tasks {
		done := old
		done.complete("2026-03-04")
		back, ok := parse(done.line())
		if !ok || !back.Done || back.Completed != "2026-03-04" || !strings.Contains(done.line(), old.Text) {
			t.Fatalf("done: %+v became %q", old, done.line())
		}
		for _, change := range []func(*file){func(f *file) { f.set(old.Number, done.line()) }, func(f *file) { f.remove(old.Number) }} {
			g := parseFile([]byte(data))
			change(&g)
			h := parseFile(g.bytes())
			if len(h.lines) != count {
				t.Fatalf("%d lines became %d: %q", count, len(h.lines), g.bytes())
			}
			for i, l := range parseFile([]byte(data)).lines {
				if i+1 != old.Number && h.lines[i] != l && i+1 != count { // the last may have been ended
					t.Fatalf("line %d: %+v became %+v", i+1, l, h.lines[i])
				}
			}
		}
	}
}

func TestFileProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{
			"x ", "(A) ", "2026-01-02 ", "2026-02-30 ", "buy ", " milk", "+p ", "@c ", "due:2026-01-02 ", "due:x ", "k:v ", "#", "# ", "\t",
			"\n", "\n", "\r\n", "\r", "\ufeff", "\xff", "\u0085", "\u2028", "http://a/ ",
		})
		checkFile(t, strings.Join(rapid.SliceOfN(word, 0, 25).Draw(t, "words"), ""))
	})
}

func FuzzFile(f *testing.F) {
	for _, seed := range []string{"", "a", "(A) 2026-01-02 a +b @c due:2026-02-03\r\n\nx 2026-01-02 2026-01-01 d\n# e", "\ufeffx (A) ", "2026-01-02"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) { checkFile(t, data) })
}
