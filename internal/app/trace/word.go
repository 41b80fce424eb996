package trace

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// wordsOf returns the distinct words of a text in lower case, in their order. A number keeps the points, commas and colons between its
// digits. Each character of a script that is written without spaces is a word.
func wordsOf(text string) (words []string) {
	known := map[string]bool{}
	add := func(word string) {
		if word != "" && !known[word] {
			known[word] = true
			words = append(words, word)
		}
	}
	runes := []rune(strings.ToLower(text))
	begin := 0
	for i, r := range runes {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			add(string(runes[begin:i]))
			add(string(r))
			begin = i + 1
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
		case strings.ContainsRune(".,:", r) && i > begin && i+1 < len(runes) && unicode.IsDigit(runes[i-1]) && unicode.IsDigit(runes[i+1]):
		default:
			add(string(runes[begin:i]))
			begin = i + 1
		}
	}
	add(string(runes[begin:]))
	return words
}

// shortWord is the length in characters below which a word says little, unless it has a digit.
const shortWord = 4

// telling returns the words of a text that can identify a source: numbers, and words that are not short; all if there are none.
func telling(text string) (words []string) {
	all := wordsOf(text)
	for _, word := range all {
		first, _ := utf8.DecodeRuneInString(word)
		long := utf8.RuneCountInString(word) >= shortWord || !unicode.In(first, unicode.Latin, unicode.Cyrillic, unicode.Greek)
		if long || strings.ContainsFunc(word, unicode.IsDigit) {
			words = append(words, word)
		}
	}
	if words == nil {
		return all
	}
	return words
}

// match is where a text holds words.
type match struct {
	words   []string // those that it holds, in the order of the question
	line    int      // the line that holds the most, from 0
	excerpt string   // of that line
}

// find looks for words in a text.
func find(text string, words []string) match {
	held, best := map[string]bool{}, 0
	var m match
	number := 0
	for line := range strings.Lines(text) {
		in := map[string]bool{}
		for _, word := range wordsOf(line) {
			in[word] = true
		}
		first, n := "", 0
		for _, word := range words {
			if !in[word] {
				continue
			}
			held[word] = true
			if n++; first == "" {
				first = word
			}
		}
		if n > best {
			best, m.line = n, number
			if m.excerpt, _ = plaintext.NewQuery([]string{first}).Excerpt(line); m.excerpt == "" { // a letter whose two cases differ in length
				m.excerpt = plaintext.Short(plaintext.Line(line), mostExcerpt)
			}
		}
		number++
	}
	for _, word := range words {
		if held[word] {
			m.words = append(m.words, word)
		}
	}
	return m
}

// needles returns the words of a text as a search takes them: without the punctuation and marks around them, which a copy may lack.
func needles(text string) (words []string) {
	for _, word := range strings.Fields(text) {
		word = strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if word != "" {
			words = append(words, word)
		}
	}
	return words
}
