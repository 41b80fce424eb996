package plaintext

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Query is a list of words that a text must all contain, in any order and case. A word may be a phrase.
type Query []needle

// needle is a word, and the part of it that can be found in a line of JSON before the line is decoded.
type needle struct {
	whole   folded
	run     folded // its longest part without characters that JSON may escape; may be empty
	foreign bool   // other software may escape some of its characters
}

// NewQuery omits empty words.
func NewQuery(words []string) (q Query) {
	for _, w := range words {
		if w = string([]rune(w)); w == "" { // drops bytes that are not UTF-8
			continue
		}
		longest := ""
		for _, run := range strings.FieldsFunc(strings.ReplaceAll(w, " {", "\n"), escaped) { // " {" joins a tool's name and input
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

// Lines yields the begin and the end of each line of text that Maybe is true for. The text is lines of JSON.
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
	const before, after = 60, 120 // bytes
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

// folded is a word to be found in any case.
type folded struct {
	word         []byte
	anchor       int // index of the byte that is searched for
	lower, upper byte
	second       int // index of another one if no byte is rare; else equal to anchor
}

// fold chooses the anchor: a byte that is rare in texts and in JSON.
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
	f.second = f.anchor
	if best >= rarity('f') || !pairs(f.lower, f.upper) || lower == upper {
		return f
	}
	best = -1
	for i := range len(word) {
		if r := rarity(lower[i]); r > best && lower[i] != f.lower && pairs(lower[i], upper[i]) {
			best, f.second = r, i
		}
	}
	return f
}

// pairs reports whether a byte in lower and in upper case can be searched for by seekPair.
func pairs(lower, upper byte) bool {
	return lower < utf8.RuneSelf && lower|caseBit == upper|caseBit
}

// caseBit tells the cases of an ASCII letter apart.
const caseBit = 'a' - 'A'

// rarity is higher for bytes that are rarer.
func rarity(b byte) int {
	const common = "\"{}[]:, etaoinsrldhcumfpgwybvkxjqz"
	switch at := strings.IndexByte(common, b); {
	case at >= 0:
		return at
	case b >= 0xC0: // begins each character of a script
		return 2
	}
	return len(common)
}

// in returns the offset of the word in a text, -1 if it is absent. The empty word is at 0.
func (f folded) in(text []byte) int {
	c := cursor{folded: f, text: text, low: -1, up: -1}
	return c.next(0)
}

// cursor finds a word in a text again and again, from left to right.
type cursor struct {
	folded

	text    []byte
	low, up int // where the anchor stands next in lower and in upper case; -1: not yet known
}

// next returns the offset of the first word at or after from, -1 if there is none. The empty word is at from.
func (c *cursor) next(from int) int {
	if len(c.word) == 0 {
		return from
	}
	if c.second != c.anchor {
		return c.seekPair(c.text, from)
	}
	for at := from + c.anchor; ; at++ {
		c.low, c.up = next(c.text, c.low, at, c.lower), next(c.text, c.up, at, c.upper)
		at = min(c.low, c.up)
		begin := at - c.anchor
		if begin+len(c.word) > len(c.text) {
			return -1
		}
		if c.is(c.text[begin : begin+len(c.word)]) {
			return begin
		}
	}
}

// is reports whether a piece of a text, of the same length, is the word. It first compares the ends, which is much faster.
func (f *folded) is(piece []byte) bool {
	last := len(f.word) - 1
	a, z := f.word[0], f.word[last]
	return (a >= utf8.RuneSelf || a|caseBit == piece[0]|caseBit) && (z >= utf8.RuneSelf || z|caseBit == piece[last]|caseBit) &&
		bytes.EqualFold(piece, f.word)
}

// seekPair is next for a word of common letters: it compares sixteen positions at a time, which is faster than to stop at each anchor.
func (f *folded) seekPair(text []byte, from int) int {
	const ones, tops, fold = 0x0101010101010101, 0x8080808080808080, caseBit * 0x0101010101010101
	first, second := ones*uint64(f.lower|caseBit), ones*uint64(f.word[f.second]|caseBit)
	last := len(text) - len(f.word)
	if from > last {
		return -1
	}
	x, y := text[from+f.anchor:], text[from+f.second:]
	for ; len(x) >= 16 && len(y) >= 16; x, y, from = x[16:], y[16:], from+16 {
		v := (binary.LittleEndian.Uint64(x) | fold) ^ first | (binary.LittleEndian.Uint64(y) | fold) ^ second
		w := (binary.LittleEndian.Uint64(x[8:]) | fold) ^ first | (binary.LittleEndian.Uint64(y[8:]) | fold) ^ second
		v, w = (v-ones)&^v&tops, (w-ones)&^w&tops // the top bits of bytes that are zero, and of some above one: there the word may be
		for v|w != 0 {
			at := from + bits.TrailingZeros64(v)/8
			if v == 0 { // at is 8 more
				at, w = at+bits.TrailingZeros64(w)/8, w&(w-1)
			}
			if v &= v - 1; at <= last && f.is(text[at:at+len(f.word)]) {
				return at
			}
		}
	}
	for ; from <= last; from++ {
		if f.is(text[from : from+len(f.word)]) {
			return from
		}
	}
	return -1
}

// next returns the offset of the first b at or after from, or the end of the text; known is an earlier result for this
// b, or -1.
func next(text []byte, known, from int, b byte) int {
	if known >= from || from >= len(text) {
		return max(known, from)
	}
	if i := bytes.IndexByte(text[from:], b); i >= 0 {
		return from + i
	}
	return len(text)
}
