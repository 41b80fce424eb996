package plaintext

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Query is a list of words that a text must all contain, in any order and case. A word may be a phrase.
type Query []needle

// needle is a word, and the part of it that can be searched for in a line of JSON before the line is decoded.
type needle struct {
	whole   folded
	run     folded // longest part without characters that JSON may escape; may be empty
	foreign bool   // other software may escape some characters of the word
}

// NewQuery makes a query of words. It omits empty ones.
func NewQuery(words []string) (q Query) {
	for _, w := range words {
		if w = string([]rune(w)); w == "" { // drops invalid UTF-8
			continue
		}
		longest := ""
		for _, run := range strings.FieldsFunc(strings.ReplaceAll(w, " {", "\n"), escaped) { // " {" separates a tool's name from its input
			if len(run) > len(longest) {
				longest = run
			}
		}
		foreign := strings.ContainsFunc(longest, func(r rune) bool { return r >= utf8.RuneSelf })
		q = append(q, needle{fold(w), fold(longest), foreign})
	}
	return q
}

// escaped reports whether JSON may contain a character in escaped form.
func escaped(r rune) bool {
	return unicode.IsControl(r) || strings.ContainsRune("\"\\/<>&\u2028\u2029\ufffd", r)
}

// Maybe reports whether a line of JSON may contain the words and so is worth decoding.
func (q Query) Maybe(line []byte) bool {
	for _, n := range q {
		if n.run.in(line) < 0 && (!n.foreign || !bytes.Contains(line, []byte(`\u`))) {
			return false
		}
	}
	return true
}

// Lines yields the beginning and end of each line for which Maybe is true. The text is lines of JSON.
func (q Query) Lines(text []byte) iter.Seq2[int, int] {
	return func(yield func(begin, end int) bool) {
		if len(q) == 0 {
			return
		}
		lead := slices.MaxFunc(q, func(a, b needle) int { return cmp.Compare(len(a.run.word), len(b.run.word)) })
		seek := cursor{folded: lead.run, text: text, low: -1, up: -1}
		for at := 0; at < len(text); {
			hit := seek.next(at)
			if lead.foreign {
				before := text[at:]
				if hit >= 0 {
					before = text[at:hit]
				}
				if i := bytes.Index(before, []byte(`\u`)); i >= 0 {
					hit = at + i
				}
			}
			if hit < 0 {
				return
			}
			begin := at + bytes.LastIndexByte(text[at:hit], '\n') + 1
			at = len(text)
			if i := bytes.IndexByte(text[hit:], '\n'); i >= 0 {
				at = hit + i
			}
			if q.Maybe(text[begin:at]) && !yield(begin, at) {
				return
			}
			at++
		}
	}
}

// Excerpt returns one line of the text around the first word, if the text contains all of the words.
func (q Query) Excerpt(text string) (line string, found bool) {
	const before, after = 60, 120 // bytes of text before and after the first word
	first := -1
	for _, n := range q {
		at := n.whole.in([]byte(text))
		if at < 0 {
			return "", false
		}
		if first < 0 {
			first = at
		}
	}
	if first < 0 {
		return "", false
	}
	from, to := max(0, first-before), min(len(text), first+after)
	for from < first && !utf8.RuneStart(text[from]) {
		from++
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	line = Line(text[from:to])
	if from > 0 {
		line = "…" + line
	}
	if to < len(text) {
		line += "…"
	}
	return line, true
}

// folded is a word to search for in any case.
type folded struct {
	word         []byte
	anchor       int // index of the byte that is searched for first
	lower, upper byte
}

// fold prepares a word. It chooses as the anchor a byte that is rare in texts and in JSON.
func fold(word string) folded {
	f := folded{word: []byte(word)}
	lower, upper := strings.ToLower(word), strings.ToUpper(word)
	if len(lower) != len(word) || len(upper) != len(word) {
		lower, upper = word, word // a few words in a few languages, which are found only as they are written
	}
	best := -1
	for i := range len(word) {
		if r := rarity(lower[i]); r > best {
			best, f.anchor, f.lower, f.upper = r, i, lower[i], upper[i]
		}
	}
	return f
}

// caseBit is the bit in which the two cases of an ASCII letter differ.
const caseBit = 'a' - 'A'

// rarity returns a number that is higher for rarer bytes. Letters were counted in prose, manuals and programs in Go, Python and
// TypeScript.
func rarity(b byte) int {
	const common = "\"{}[]:, etsonrialdcphfumgbwykvxjqz"
	switch at := strings.IndexByte(common, b); {
	case at >= 0:
		return at
	case b >= 0xC0: // first byte of all characters of a script
		return 2
	}
	return len(common)
}

// in returns the offset of the word in a text; -1 if it is absent. The empty word is at 0.
func (f folded) in(text []byte) int {
	c := cursor{folded: f, text: text, low: -1, up: -1}
	return c.next(0)
}

// cursor finds the occurrences of a word in a text, from left to right.
type cursor struct {
	folded

	text    []byte
	low, up int // next offset of the anchor in lower and in upper case; -1 if not searched yet
}

// next returns the offset of the first occurrence at or after from; -1 if there is none. The empty word is at from.
func (c *cursor) next(from int) int {
	if len(c.word) == 0 {
		return from
	}
	end := len(c.word) - 1
	first, last := c.word[0], c.word[end]
	for at := from + c.anchor; ; at++ {
		if c.low < at {
			c.low = next(c.text, at, c.lower)
		}
		if c.up < at {
			c.up = next(c.text, at, c.upper)
		}
		at = min(c.low, c.up)
		begin := at - c.anchor
		if begin+end >= len(c.text) {
			return -1
		}
		// The ends are compared first, which is much faster.
		if (first >= utf8.RuneSelf || first|caseBit == c.text[begin]|caseBit) &&
			(last >= utf8.RuneSelf || last|caseBit == c.text[begin+end]|caseBit) &&
			bytes.EqualFold(c.text[begin:begin+end+1], c.word) {
			return begin
		}
	}
}

// next returns the offset of the first b at or after from, or the end of the text.
func next(text []byte, from int, b byte) int {
	if from < len(text) {
		if i := bytes.IndexByte(text[from:], b); i >= 0 {
			return from + i
		}
	}
	return max(from, len(text))
}
