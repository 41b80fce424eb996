package ui_test

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/ui"
)

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"one two three\n":                 "one two\n  three\n",
		"a `b c d e f g` h\n":             "a\n  b c d e f g\n  h\n",
		"`b c d e f g` h\n":               "b c d e f g\n  h\n",
		"`b c d e f g`;\n":                "b c d e f g\n",
		"a: ollim status; b\n":            "a:\n  ollim status\n  b\n",
		"a: ollim x; b\n":                 "a:\n  ollim x\n  b\n",
		"why? ollim do \"a; b\", c\n":     "why?\n  ollim do \"a; b\"\n  c\n",
		"a: ollim set engine x (or y)\n":  "a:\n  ollim set engine x\n  (or y)\n",
		"ollim runs it\n":                 "ollim runs\n  it\n",
		"the ollim command and more\n":    "the ollim\n  command\n  and more\n",
		"a: ollim\n":                      "a: ollim\n",
		"exactly 10\nlonger-than-ten x\n": "exactly 10\nlonger-than-ten\n  x\n",
		"  two  spaces\n":                 "  two\n  spaces\n",
		"no end":                          "no end\n",
		"日本語テスト\n":                        "日本語テス\n  ト\n",
		"see 日本語テスト, too\n":               "see 日本語\n  テスト,\n  too\n",
		"`a b` and `c` `d\n":              "`a b` and\n  `c` `d\n",
		"a bé́cde fghi\n":                 "a bé́cde\n  fghi\n",
		"an open `b c d e f g h\n":        "an open `b\n  c d e f\n  g h\n",
	} {
		if got := ui.Fold(in, 10); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// A text of somebody else is broken at words only, below its own beginning.
func TestFlow(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"one two three\nfour":        "one two\nthree\nfour",
		"    one two three\n\n":      "    one\n    two\n    three\n\n",
		"  - one two three\n":        "  - one\n    two\n    three\n",
		"10. one two\n":              "10. one\n    two\n",
		"- - -\n-\n":                 "- - -\n-\n",
		"a `b c d e f g` h\n":        "a `b c d e\nf g` h\n",
		"say: ollim fire disk now\n": "say: ollim\nfire disk\nnow\n",
		"\tone two three\n":          "    one\n    two\n    three\n",
		"          deep text\n":      "          deep\n     text\n",
		"日本語テスト 日本\n":                "日本語テス\nト 日本\n",
	} {
		if got := ui.Flow(in, 10, 0); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got, want := ui.Flow("head one\n    body of it\n", 10, 2), "head one\n    body\n    of it\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := ui.Flow("head and more", 10, 2), "head and\n  more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Nothing is lost but spaces, and only a line of one piece is longer than allowed.
func FuzzWrap(f *testing.F) {
	f.Add("one two `three four` 日本語テスト https://example.com/a/long/path", 12, 2)
	f.Add("  `", 1, 0)
	f.Add("to see it: ollim run log last; or \"ollim x", 9, 2)
	f.Fuzz(func(t *testing.T, line string, columns, indent int) {
		columns, indent = columns&0xff, indent&7
		line = strings.ToValidUTF8(line, "\ufffd") // as all that is shown
		lines := ui.Wrap(line, columns, indent)
		bare := func(text string) string { return strings.ReplaceAll(text, " ", "") }
		if bare(strings.Join(lines, "")) != bare(line) {
			t.Errorf("%q became %q", line, lines)
		}
		if flow := ui.Flow(line, columns, indent); bare(strings.ReplaceAll(flow, "\n", "")) != bare(strings.ReplaceAll(strings.ReplaceAll(line, "\t", " "), "\n", "")) {
			t.Errorf("%q flows as %q", line, flow)
		}
		for i, l := range lines {
			text := strings.TrimLeft(l, " ")
			if columns > indent && ui.Width(l) > columns && i > 0 && strings.Contains(text, " ") && !strings.Contains(text, "`") && !strings.HasPrefix(text, "ollim ") {
				t.Errorf("%q has more than %d columns", l, columns)
			}
		}
	})
}
