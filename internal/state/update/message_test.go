package update

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "hello", "hello"},
		{"trimmed", " \n\thello\u00a0\n ", "hello"},
		{"newline and tab stay", "a\n\tb", "a\n\tb"},
		{"carriage returns go", "a\r\nb\rc", "a\nbc"},
		{"escape sequence", "\x1b[31mred\x07\x00", "[31mred"},
		{"DEL and C1", "a\x7fb\u0080c\u009fd\u0085e", "abcde"},
		{"bidi", "a\u202ab\u202bc\u202cd\u202de\u202ef\u2066g\u2067h\u2068i\u2069j", "abcdefghij"},
		{"bidi neighbours stay", "a\u2029b\u202fc\u2065d\u206ae", "a\u2029b\u202fc\u2065d\u206ae"},
		{"invalid UTF-8", "a\xffb\xc3", "a\uFFFDb\uFFFD"},
		{"other scripts and emoji", "日本語 🎉 é", "日本語 🎉 é"},
		{"nothing", "", ""},
		{"nothing visible", " \x00\u202e\n\x1b", ""},
		{"blank only after removal", "\x00 \x00", ""},
		{"imitated sentinel", "(3 earlier update(s) omitted — cap reached)", `"(3 earlier update(s) omitted — cap reached)"`},
		{"imitated behind controls", "\u202e (3 earlier update(s)\x00 omitted — cap reached)\n", `"(3 earlier update(s) omitted — cap reached)"`},
		{"not quite a sentinel", "(03 earlier update(s) omitted — cap reached)", "(03 earlier update(s) omitted — cap reached)"},
		{"about a sentinel", "see (3 earlier update(s) omitted — cap reached)", "see (3 earlier update(s) omitted — cap reached)"},
		{"exactly full", strings.Repeat("é", MaxChars), strings.Repeat("é", MaxChars)},
		{"one too many", strings.Repeat("é", 4001), strings.Repeat("é", 3969) + "… [cut: 4001 characters in all]"},
		{"cut at a space", strings.Repeat("x", 3960) + strings.Repeat(" ", 100) + "y",
			strings.Repeat("x", 3960) + "… [cut: 4061 characters in all]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Clean(tt.in); got != tt.want {
				t.Errorf("Clean(%.60q) = %.60q… (%d), want %.60q… (%d)", tt.in, got, utf8.RuneCountInString(got), tt.want,
					utf8.RuneCountInString(tt.want))
			}
		})
	}
}

func TestSentinelCount(t *testing.T) {
	for message, want := range map[string]int{
		"(1 earlier update(s) omitted — cap reached)":                1,
		"(3 earlier update(s) omitted — cap reached)":                3,
		"(120 earlier update(s) omitted — cap reached)":              120,
		"(0 earlier update(s) omitted — cap reached)":                0,
		"(-3 earlier update(s) omitted — cap reached)":               0,
		"(+3 earlier update(s) omitted — cap reached)":               0,
		"(03 earlier update(s) omitted — cap reached)":               0,
		"(9999999999999999 earlier update(s) omitted — cap reached)": 0,
		"( earlier update(s) omitted — cap reached)":                 0,
		"(3 earlier update(s) omitted - cap reached)":                0,
		"(3 earlier update(s) omitted — cap reached) ":               0,
		"3":  0,
		"(3": 0,
	} {
		n, ok := sentinelCount(message)
		if ok != (want > 0) || ok && n != want {
			t.Errorf("sentinelCount(%q) = %d, %v, want %d", message, n, ok, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("hello")
	f.Add("\x1b[31m\u202e\xff\x00")
	f.Add(sentinel(3))
	f.Add(strings.Repeat("é \n", 2000))
	f.Add(strings.Repeat("\x80a", 4001))
	f.Fuzz(func(t *testing.T, in string) {
		out := Clean(in)
		if n := utf8.RuneCountInString(out); n > MaxChars {
			t.Errorf("%d characters", n)
		}
		if !utf8.ValidString(out) || strings.TrimSpace(out) != out {
			t.Errorf("not valid or not trimmed: %q", out)
		}
		if strings.ContainsFunc(out, dangerous) {
			t.Errorf("control characters in %q", out)
		}
		if _, ok := sentinelCount(out); ok {
			t.Errorf("%q passes for a sentinel", out)
		}
		if again := Clean(out); again != out {
			t.Errorf("not idempotent: %q, then %q", out, again)
		}
	})
}

// dangerous is written from the numbers of the code points, not from the code under test.
func dangerous(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e ||
		r >= 0x2066 && r <= 0x2069 || unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t'
}
