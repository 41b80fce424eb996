package transcript

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// needle is a word that is looked for, and what of it can be looked for in lines of JSON before they are decoded.
type needle struct {
	whole   folded
	run     folded // its longest part that JSON has as it is; empty if there is none
	foreign bool   // other software may write some of its characters by their numbers
}

func needles(words []string) (list []needle) {
	for _, w := range words {
		if w = string([]rune(w)); w == "" { // no bytes that are not UTF-8
			continue
		}
		n := needle{whole: fold(w)}
		longest := ""
		for _, run := range strings.FieldsFunc(w, escaped) {
			if len(run) > len(longest) {
				longest = run
			}
		}
		n.run, n.foreign = fold(longest), strings.ContainsFunc(longest, func(r rune) bool { return r >= utf8.RuneSelf })
		list = append(list, n)
	}
	return list
}

// escaped says which characters may stand in JSON in another form.
func escaped(r rune) bool {
	return unicode.IsControl(r) || strings.ContainsRune("\"\\/<>&\u2028\u2029\ufffd", r)
}

func (n needle) maybe(line []byte) bool {
	return n.run.in(line) >= 0 || n.foreign && bytes.Contains(line, []byte(`\u`))
}

// folded is a word to be found in any case.
type folded struct {
	word         []byte
	anchor       int // the byte of the word that is looked for
	lower, upper byte
}

// fold chooses the anchor: a byte that is rare in texts and in JSON.
func fold(word string) folded {
	f := folded{word: []byte(word)}
	lower, upper := strings.ToLower(word), strings.ToUpper(word)
	if len(lower) != len(word) || len(upper) != len(word) {
		lower, upper = word, word // of few words in few languages; they are found as they are written
	}
	best := -1
	for i := range len(word) {
		if r := rarity(lower[i]); r > best {
			best, f.anchor, f.lower, f.upper = r, i, lower[i], upper[i]
		}
	}
	return f
}

// rarity is higher for what is rarer.
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

// in is where the word begins in a text, -1 if it is not there. The empty word is everywhere.
func (f folded) in(text []byte) int {
	if len(f.word) == 0 {
		return 0
	}
	low, up := -1, -1
	for at := f.anchor; ; at++ {
		low, up = next(text, low, at, f.lower), next(text, up, at, f.upper)
		at = min(low, up)
		begin := at - f.anchor
		if begin+len(f.word) > len(text) {
			return -1
		}
		if bytes.EqualFold(text[begin:begin+len(f.word)], f.word) {
			return begin
		}
	}
}

// next is where b is, not before from; known is the answer to an earlier question, or -1. What is nowhere is behind the text.
func next(text []byte, known, from int, b byte) int {
	if known >= from || from >= len(text) {
		return max(known, from)
	}
	if i := bytes.IndexByte(text[from:], b); i >= 0 {
		return from + i
	}
	return len(text)
}
