package ui_test

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/ui"
)

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"":                                    "",
		"one two three\n":                     "one two\n  three\n",
		"a `b c d e f g` h\n":                 "a\n    b c d e f g\n  h\n",
		"exactly 10\nlonger-than-ten x\n":     "exactly 10\nlonger-than-ten\n  x\n",
		"  two  spaces\n":                     "  two\n  spaces\n",
		"no end":                              "no end\n",
		"日本語テスト\n":                            "日本語テス\n  ト\n",
		"do `one two three`, or wait a bit\n": "do\n    one two three\n  or wait\n  a bit\n",
		"see 日本語テスト, too\n":                   "see 日本語\n  テスト,\n  too\n",
		"`a b` and `c` `d\n":                  "`a b` and\n    c\n  `d\n",
		"a bé́cde fghi\n":                     "a bé́cde\n  fghi\n",
		"an open `b c d e f g h\n":            "an open\n  `b c d e f g h\n",
	} {
		if got := ui.Fold(in, 10); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Nothing is lost but spaces, and only a line of one piece is longer than allowed.
func FuzzWrap(f *testing.F) {
	f.Add("one two `three four` 日本語テスト https://example.com/a/long/path", 12, 2)
	f.Add("  `", 1, 0)
	f.Fuzz(func(t *testing.T, line string, columns, indent int) {
		columns, indent = columns&0xff, indent&7
		lines := ui.Wrap(line, columns, indent)
		bare := func(text string) string { return strings.ReplaceAll(text, " ", "") }
		if bare(strings.Join(lines, "")) != bare(line) {
			t.Errorf("%q became %q", line, lines)
		}
		for i, l := range lines {
			text := strings.TrimLeft(l, " ")
			if columns > indent && ui.Width(l) > columns && i > 0 && strings.Contains(text, " ") && !strings.Contains(text, "`") {
				t.Errorf("%q has more than %d columns", l, columns)
			}
		}
	})
}
