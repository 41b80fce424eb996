package plaintext

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// First returns the first most characters of s, and reports whether there are more.
func First(s string, most int) (first string, more bool) {
	n := 0
	for at := range s {
		if n++; n > most {
			return s[:at], true
		}
	}
	return s, false
}

// Short returns s if it has at most most characters, otherwise its beginning with an ellipsis, at most most characters in all.
func Short(s string, most int) string {
	if _, more := First(s, most); !more {
		return s
	}
	first, _ := First(s, most-1)
	return first + "…"
}

const (
	alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	longestName  = 200 // bytes; with ".lock" or a time around it, a name still fits a file name (255)
)

// IsID reports whether s can be the id of a job: [A-Za-z0-9][A-Za-z0-9._-]{0,63}.
func IsID(s string) bool {
	return s != "" && len(s) <= 64 && IsWord(s, "._-") && strings.IndexByte(alphanumeric, s[0]) >= 0
}

// IsWord reports whether s has only ASCII letters, digits and characters of punctuation.
func IsWord(s, punctuation string) bool { return strings.Trim(s, alphanumeric+punctuation) == "" }

// Word returns s with underscores in place of all characters except letters, digits, - and _. Services require this form of ids and
// names.
func Word(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(alphanumeric+"-_", r) {
			return r
		}
		return '_'
	}, s)
}

// IsName reports whether s can be the id of a session. It accepts the ids of every engine, and rejects names that are
// unsafe as a file name or command argument, or that could be read as JSON.
func IsName(s string) bool {
	return s != "" && s != "." && len(s) <= longestName && utf8.ValidString(s) && s[0] != '-' && s[0] != '{' &&
		!strings.ContainsAny(s, `/\ `) && !strings.Contains(s, "..") &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Count returns a number with its noun. It adds an s to the noun unless the number is one.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Thousands formats a number, such as one of tokens, in short: 950, 3.1k or 120k.
func Thousands(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n)
	case n < 10_000:
		return strconv.FormatFloat(float64(n/100)/10, 'f', 1, 64) + "k"
	}
	return strconv.Itoa(n/1000) + "k"
}

// Tally lists numbers with what they count, the largest first: "3 ok, 1 failed".
func Tally[T ~string](counts map[T]int) string {
	var words []string
	kinds := slices.Collect(maps.Keys(counts))
	slices.SortStableFunc(kinds, func(a, b T) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	for _, what := range kinds {
		words = append(words, strconv.Itoa(counts[what])+" "+string(what))
	}
	return strings.Join(words, ", ")
}

// WholeRunes removes an incomplete character from the end of a text.
func WholeRunes(text []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if tail := text[len(text)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return text[:len(text)-i]
			}
			break
		}
	}
	return text
}
