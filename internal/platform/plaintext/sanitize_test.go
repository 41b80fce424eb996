package plaintext

import (
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
