package plaintext

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFolded compares every way to find a word with a comparison at each offset.
func TestFolded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		letters := []rune(rapid.SampledFrom([]string{"esES", "estoken ESTON", "zrsZRS{0P@`", "eés漢ÉжЖ", "\x01\u0080s\x00r"}).Draw(t, "letters"))
		runes := rapid.SliceOfN(rapid.SampledFrom(letters), 0, 200).Draw(t, "text")
		word := rapid.StringOfN(rapid.SampledFrom(letters), 1, 6, -1).Draw(t, "word")
		if rapid.Bool().Draw(t, "present") && len(runes) > 0 {
			from := rapid.IntRange(0, len(runes)-1).Draw(t, "from")
			word = string(runes[from:rapid.IntRange(from+1, min(len(runes), from+12)).Draw(t, "to")])
		}
		text := []byte(strings.Repeat(".", rapid.IntRange(0, 40).Draw(t, "before")) + string(runes))
		at, want := rapid.IntRange(0, len(text)).Draw(t, "at"), -1
		for i := at; i+len(word) <= len(text) && want < 0; i++ {
			if piece := string(text[i : i+len(word)]); strings.EqualFold(piece, word) {
				want = i
			}
		}
		c := cursor{folded: fold(word), text: text, low: -1, up: -1}
		if got := c.next(at); got != want {
			t.Fatalf("%q from %d in %q: %d, want %d; anchor %d", word, at, text, got, want, c.anchor)
		}
	})
}
