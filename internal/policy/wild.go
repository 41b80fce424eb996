package policy

import (
	"slices"
	"strings"
)

// wild is a word of a command with wildcards: the literal pieces between them. One piece is a literal word, two empty ones a lone *.
type wild []string

func (w wild) literal() bool { return len(w) == 1 }

// literalBegin returns the words before the first wildcard.
func literalBegin(words []wild) (begin []string) {
	for _, w := range words {
		if !w.literal() {
			break
		}
		begin = append(begin, w[0])
	}
	return begin
}

// match reports whether s is w with each wildcard replaced by some text. It takes the leftmost place for each piece, which
// finds a match if there is one.
func (w wild) match(s string) bool {
	s, ok := strings.CutPrefix(s, w[0])
	if w.literal() {
		return ok && s == ""
	}
	for _, piece := range w[1 : len(w)-1] {
		if ok {
			_, s, ok = strings.Cut(s, piece)
		}
	}
	return ok && strings.HasSuffix(s, w[len(w)-1])
}

// matchWords matches word by word; a lone * at the end of the pattern takes all the words that are left.
func matchWords(pattern []wild, words []string) bool {
	for i, w := range pattern {
		if i == len(pattern)-1 && slices.Equal(w, wild{"", ""}) {
			return len(words) >= i
		}
		if i >= len(words) || !w.match(words[i]) {
			return false
		}
	}
	return len(pattern) == len(words)
}

// wilds returns literal words.
func wilds(words []string) []wild {
	list := make([]wild, len(words))
	for i, word := range words {
		list[i] = wild{word}
	}
	return list
}
