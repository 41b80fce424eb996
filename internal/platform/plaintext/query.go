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
	others       []int // indices of one or two other bytes, if no byte is rare
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
	if best >= rarity('f') || !isFolded(f.lower, f.upper) || lower == upper {
		return f
	}
	chosen := []byte{f.lower}
	for len(f.others) < 2 {
		best, at := -1, 0
		for i := range len(word) {
			if r := rarity(lower[i]); r > best && !slices.Contains(chosen, lower[i]) && isFolded(lower[i], upper[i]) {
				best, at = r, i
			}
		}
		if best < 0 {
			break
		}
		chosen, f.others = append(chosen, lower[at]), append(f.others, at)
	}
	return f
}

// isFolded reports whether seek can look for a byte that is this one in lower and that one in upper case.
func isFolded(lower, upper byte) bool {
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
	if len(c.others) > 0 {
		return c.seek(c.text, from)
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

// seek is next for a word of common letters: it compares two or three letters at eight positions at a time, which is faster than to stop
// at each anchor.
func (f *folded) seek(text []byte, from int) int {
	const ones, tops, fold = 0x0101010101010101, 0x8080808080808080, caseBit * 0x0101010101010101
	second, third := f.others[0], f.others[len(f.others)-1]
	a, b, c := ones*uint64(f.lower|caseBit), ones*uint64(f.word[second]|caseBit), ones*uint64(f.word[third]|caseBit)
	last := len(text) - len(f.word)
	for ; from+8+len(f.word) <= len(text); from += 8 {
		v := (binary.LittleEndian.Uint64(text[from+f.anchor:]) | fold) ^ a | (binary.LittleEndian.Uint64(text[from+second:]) | fold) ^ b |
			(binary.LittleEndian.Uint64(text[from+third:]) | fold) ^ c
		for v = (v - ones) & ^v & tops; v != 0; v &= v - 1 { // the top bits of bytes that are zero, and of some above one: there the word may be
			at := from + bits.TrailingZeros64(v)/8
			if f.is(text[at : at+len(f.word)]) {
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
