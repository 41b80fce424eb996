package ui_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/ui"
)

// render shows a text that arrives in pieces of so many bytes.
func render(text string, size int, o ui.TextOptions) string {
	var out strings.Builder
	t := ui.NewText(&out, o)
	for text != "" {
		n := min(size, len(text))
		_, _ = t.Write([]byte(text[:n]))
		text = text[n:]
	}
	_ = t.End()
	return out.String()
}

func columns(n int) func() int { return func() int { return n } }

// marked writes the sequences of attributes as letters.
func marked(text string) string {
	return strings.NewReplacer("\x1b[0m", "}", "\x1b[1m", "{b:", "\x1b[2m", "{d:", "\x1b[3m", "{i:", "\x1b[36m", "{c:", "\x1b[4m", "{u:",
		"\x1b[9m", "{s:").Replace(text)
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain":                                  "plain\n",
		"a **b c** d":                            "a{b: b c} d\n",
		"*a*, _b_, ***c***":                      "{i:a},{i: b},{b:{i: c}\n",
		"say `x **y**` now":                      "say{c: x **y**} now\n",
		"`` a`b ``":                              "{c:a`b}\n",
		"~~gone~~ ~ home":                        "{s:gone} ~ home\n",
		"never **closed":                         "never **closed\n",
		"2 * 3 * 4 and a_b_c":                    "2 * 3 * 4 and a_b_c\n",
		"*.go and *.md":                          "*.go and *.md\n",
		`\*not\* a\b`:                            `*not* a\b` + "\n",
		"**bold *both***":                        "{b:bold}{b:{i: both}\n",
		"# Title\ntext":                          "{b:{u:Title}\ntext\n",
		"### Small":                              "{b:Small}\n",
		"#tag":                                   "#tag\n",
		"- one\n- **two**\n  - three":            "• one\n• {b:two}\n  • three\n",
		"1. one\n12) two\n2026 was":              "1. one\n12) two\n2026 was\n",
		"> said\n> more":                         "{d:│ }said\n{d:│ }more\n",
		"---\n***\n- - -":                        strings.Repeat("{d:"+strings.Repeat("─", 29)+"}\n", 3),
		"```go\nx := **p\n\n```\nafter":          "  {c:x := **p}\n  {c:}\nafter\n",
		"```\nopen":                              "  {c:open}\n",
		"[a](https://a.example) [b]":             "{u:a}{d: (https://a.example)} [b]\n",
		"[https://a.example](https://a.example)": "{u:https://a.example}\n",
		"one two three four five six seven":      "one two three four five six\nseven\n",
		"- one two three four five six seven":    "• one two three four five six\n  seven\n",
		"日本語テスト日本語テスト日本語。":                           "日本語テスト日本語テスト日本\n語。\n",
		"|a|b|\n|-|-|\n|1|`x|y`|\nend":               "{b:a}  {b:b}\n{d:─  ───}\n1  {c:x|y}\nend\n",
		"| no table\n| at all":                       "| no table\n| at all\n",
		"\n\na\n\n\nb":                               "\n\na\n\n\nb\n",
		"x\x1b]0;title\x07\x1b[2J\u202ey":            "x]0;title[2Jy\n",
		"averyveryveryveryveryverylongwordthatisone": "averyveryveryveryveryverylong\nwordthatisone\n",
	} {
		for _, size := range []int{1, 2, 3, 1000} {
			if got := marked(render(text, size, ui.TextOptions{Columns: columns(30), Styled: true})); got != want {
				t.Errorf("%q in pieces of %d:\n%q, want\n%q", text, size, got, want)
			}
		}
	}
}

// TestTextAsTyped: without styles the text is what it was, in rows that fit.
func TestTextAsTyped(t *testing.T) {
	t.Parallel()
	const text = "# **Title**\n\n- `one` two three\n|a|\n"
	if got := render(text, 4, ui.TextOptions{}); got != text {
		t.Errorf("%q", got)
	}
	want := "  # **Title**\n\n  - `one` two\n  three\n  |a|\n"
	if got := render(text, 4, ui.TextOptions{Columns: columns(14), Indent: 2}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWordsArriveAsTheyAreWritten: a word is shown when the next one begins, and markup when it is closed.
func TestWordsArriveAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	text := ui.NewText(&out, ui.TextOptions{Columns: columns(40), Styled: true})
	for _, step := range []struct{ piece, shown string }{
		{"one", ""}, {" tw", "one"}, {"o **b", "one two"}, {"c", "one two"}, {"** d ", "one two bc"}, {"e\nf", "one two bc d e\n"},
	} {
		_, _ = text.Write([]byte(step.piece))
		if got := regexp.MustCompile(`\x1b\[\d*m`).ReplaceAllString(out.String(), ""); got != step.shown {
			t.Errorf("after %q the screen shows %q, want %q", step.piece, got, step.shown)
		}
	}
}

// TestTableByWidth: a table that is wider than the terminal wraps in its widest column.
func TestTableByWidth(t *testing.T) {
	t.Parallel()
	const table = "| 名前 | about |\n|---|---|\n| ls | lists what a directory has |\n| 日本 | x |\n"
	want := strings.Join([]string{"名前  about", "────  ──────────────", "ls    lists what a", "      directory has", "日本  x", ""}, "\n")
	got := regexp.MustCompile(`\x1b\[\d*m`).ReplaceAllString(render(table, 5, ui.TextOptions{Columns: columns(21), Styled: true}), "")
	if got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

// FuzzText: whatever an agent writes, and in whatever pieces, a terminal gets text and attributes only, no row is too wide, no style
// stays, and the pieces make no difference.
func FuzzText(f *testing.F) {
	for _, seed := range []string{
		"# a **b** `c` [d](e) _f_", "```\n\x1b[2Jx\n```\n", "|a|b|\n|-|-|\n|**x**|`y`|\n", "- 1. > # x\n> * y", "日本語e\u0301👩‍👩‍👧\xff\xf0\x9f", "***a** b*\\*",
		"1" + strings.Repeat("*", 500), strings.Repeat("x", 500), "\x9b31m\u202e\x07",
	} {
		f.Add(seed, 3, 20)
		f.Add(seed, 1, 1)
	}
	attributes := regexp.MustCompile(`\x1b\[[0-9]{1,2}m`)
	f.Fuzz(func(t *testing.T, text string, size, width int) {
		if size < 1 || width < 0 || width > 500 || len(text) > 5000 {
			return
		}
		for _, styled := range []bool{true, false} {
			o := ui.TextOptions{Columns: columns(width), Styled: styled, Indent: size % 3}
			got := render(text, size, o)
			plain := attributes.ReplaceAllString(got, "")
			if !utf8.ValidString(plain) || strings.ContainsFunc(plain, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
				t.Errorf("%q takes the terminal over: %q", text, got)
			}
			if !styled && plain != got {
				t.Errorf("%q has attributes: %q", text, got)
			}
			if i := strings.LastIndex(got, "\x1b["); i >= 0 && !strings.HasPrefix(got[i:], "\x1b[0m") {
				t.Errorf("%q leaves a style: %q", text, got)
			}
			for row := range strings.SplitSeq(plain, "\n") {
				if width > 19 && ui.Width(row) > width-1 {
					t.Errorf("%q in %d columns has the row %q", text, width, row)
				}
			}
			if whole := render(text, len(text)+1, o); utf8.ValidString(text) && attributes.ReplaceAllString(whole, "") != plain {
				t.Errorf("%q in pieces of %d: %q, as a whole %q", text, size, got, whole)
			}
		}
	})
}
