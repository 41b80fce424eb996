package plaintext

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSanitize(t *testing.T) {
	for _, tc := range []struct{ in, lines, line string }{
		{"", "", ""},
		{"  a  b ", "  a  b ", "a b"},
		{"a\nb\tc\r\nd", "a\nb\tc\nd", "a b c d"},
		{"a\x1b[2Jb\u009b1mc\x7f\x00d", "a[2Jb1mcd", "a[2Jb1mcd"},
		{"a\u202eb\u2066c\u2069", "abc", "abc"},
		{"a\u2028b\u00a0c\u0085d", "a\u2028b\u00a0cd", "a b c d"},
		{"a\xffb", "a\ufffdb", "a\ufffdb"},
		{"👩‍👩‍👧 日本", "👩‍👩‍👧 日本", "👩‍👩‍👧 日本"},
	} {
		if got := Lines(tc.in); got != tc.lines {
			t.Errorf("Lines(%q) = %q", tc.in, got)
		}
		if got := Line(tc.in); got != tc.line {
			t.Errorf("Line(%q) = %q", tc.in, got)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("a\x1b[2J\u202e\r\n\tb\xff")
	f.Fuzz(func(t *testing.T, s string) {
		lines, line := Lines(s), Line(s)
		odd := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
		if !utf8.ValidString(lines) || strings.ContainsFunc(lines, odd) || Lines(lines) != lines {
			t.Errorf("%q: %q", s, lines)
		}
		if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) || Line(line) != line || strings.Contains(line, "  ") {
			t.Errorf("%q: %q", s, line)
		}
	})
}

func TestShort(t *testing.T) {
	for _, tc := range []struct {
		in    string
		most  int
		want  string
		first string
	}{{"", 3, "", ""}, {"abc", 3, "abc", "abc"}, {"abcd", 3, "ab…", "abc"}, {"äöüß", 3, "äö…", "äöü"}, {"a\xffbc", 3, "a\xff…", "a\xffb"}} {
		first, more := First(tc.in, tc.most)
		if got := Short(tc.in, tc.most); got != tc.want || first != tc.first || more != (first != tc.in) {
			t.Errorf("Short(%q, %d) = %q, First = %q, %v", tc.in, tc.most, got, first, more)
		}
	}
}

func TestIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"c44e97cf": true, "A.b_c-d": true, "": false, ".a": false, "-a": false, "a/b": false, "ä": false,
		strings.Repeat("x", 64): true, strings.Repeat("x", 65): false,
	} {
		if got := IsID(id); got != want {
			t.Errorf("IsID(%q) = %v", id, got)
		}
	}
}

func FuzzDiff(f *testing.F) {
	f.Add("a\nb\n", "b\nc\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		var gone, come int
		for line := range strings.Lines(Diff([]byte(before), []byte(after))) {
			switch {
			case strings.HasPrefix(line, "- ") && strings.Contains(before, strings.TrimSuffix(line[2:], "\n")):
				gone++
			case strings.HasPrefix(line, "+ ") && strings.Contains(after, strings.TrimSuffix(line[2:], "\n")):
				come++
			default:
				t.Errorf("%q, %q: %q", before, after, line)
			}
		}
		if before == after && gone+come > 0 {
			t.Errorf("%q: %d lines differ from themselves", before, gone+come)
		}
	})
}

// TestQuery: every text that has the words is found, in any case, also as a line of JSON.
func TestQuery(t *testing.T) {
	for _, tc := range []struct{ words, text, want string }{
		{"gnu", "A GNU.", "A GNU."}, {"b|a", "a b", "a b"}, {"a|c", "a b", ""}, {"", "a", ""}, {"ZÜRICH", "Zürich <x>\n\"y\"", "Zürich <x> \"y\""},
		{`<X>`, "Zürich <x>", "Zürich <x>"}, {"x", strings.Repeat("é", 50) + "x" + strings.Repeat("é", 100), "…" + strings.Repeat("é", 30) + "x" + strings.Repeat("é", 60) + "…"},
	} {
		q := NewQuery(strings.Split(tc.words, "|"))
		if line, found := q.Excerpt(tc.text); line != tc.want || found != (tc.want != "") {
			t.Errorf("%q in %q: %q, %v", tc.words, tc.text, line, found)
		}
		if json, err := json.Marshal(tc.text); err != nil || tc.want != "" && !q.Maybe(json) {
			t.Errorf("%q passes over %s, %v", tc.words, json, err)
		}
	}
}
