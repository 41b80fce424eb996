package plaintext

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agext/levenshtein"
)

// most is the largest number of words in a suggestion.
const most = 3

// Similar returns the known words most similar to word, best first, at most three, or nil. A word is similar if at most
// a third of its letters (but at least two, and never all) must change; case is ignored.
func Similar(word string, known []string) []string {
	type candidate struct {
		word     string
		distance int
	}
	var near []candidate
	for _, k := range known {
		size := utf8.RuneCountInString(k)
		limit := max(2, max(utf8.RuneCountInString(word), size)/3)
		if d := levenshtein.Distance(strings.ToLower(word), strings.ToLower(k), nil); d <= limit && d < size {
			near = append(near, candidate{k, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var words []string
	for _, c := range near[:min(most, len(near))] {
		words = append(words, c.word)
	}
	return words
}

// Suggestion returns what an error about an unknown word adds for the words that Similar returned: " (did you mean run, runs?)", or "".
func Suggestion(similar ...string) string {
	if len(similar) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(similar, ", ") + "?)"
}

// Unknown is the error of a name that does not exist.
type Unknown struct {
	What string // kind of object that the name is for: job, run, skill
	Name string
	Near []string // similar names, best first
	Bad  int      // number of files that could not be read, one of which may have the name
}

func (e *Unknown) Error() string {
	return fmt.Sprintf("no %s %q%s", e.What, e.Name, Suggestion(e.Near...))
}

// Ambiguous is the error of a name that fits several objects.
type Ambiguous struct{ Name, Any string }

func (e *Ambiguous) Error() string { return fmt.Sprintf("%q could be any of: %s", e.Name, e.Any) }
