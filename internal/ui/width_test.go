package ui_test

import (
	"testing"

	"github.com/ollim/ollim/internal/ui"
)

func TestWidth(t *testing.T) {
	for line, want := range map[string]int{
		"": 0, "ollim": 5, "日本語": 6, "e\u0301": 1, "👩‍👩‍👧": 2, "🇩🇪": 2, "한": 2, "ｱ": 1, "…": 1, "👍🏽": 2, "a\u200bb": 2,
	} {
		if got := ui.Width(line); got != want {
			t.Errorf("%q is %d columns wide, want %d", line, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		line    string
		columns int
		want    string
	}{
		{"ollim", 5, "ollim"}, {"ollim", 4, "oll…"}, {"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"ollim", 1, "…"},
	} {
		if got := ui.Shorten(c.line, c.columns); got != c.want {
			t.Errorf("%q in %d columns is %q, want %q", c.line, c.columns, got, c.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("日本語テスト", 3)
	f.Add("👩‍👩‍👧e\u0301", 1)
	f.Fuzz(func(t *testing.T, line string, columns int) {
		first, rest := ui.Cut(line, columns)
		if first+rest != line || line != "" && first == "" {
			t.Errorf("%q in %d columns: %q and %q", line, columns, first, rest)
		}
		if _, more := ui.Cut(first, 0); ui.Width(first) > columns && more != "" {
			t.Errorf("%q is wider than %d columns", first, columns)
		}
	})
}
