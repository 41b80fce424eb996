package man

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"unicode"
)

// section is one section of a manual page as plain text.
type section struct {
	Page  string // such as ollim-fire(1)
	Title string
	Text  string

	minor bool // it is a part of the one before, whose title comes first in its own
	lines []line
}

// Bounds of an answer.
const (
	maxSections = 4
	maxSection  = 3000 // characters
	maxTerms    = 50   // words of a query that count
)

// Answer is the sections that say most about the query, best first, or that there are none.
func Answer(query string) string {
	found := search(query)
	if len(found) == 0 {
		return "The manual says nothing about that. `ollim help all` lists every command."
	}
	var parts []string
	for _, s := range found[:min(len(found), maxSections)] {
		parts = append(parts, fmt.Sprintf("%s, %s\n\n%s", s.Page, s.Title, shortened(s.Text)))
	}
	return strings.Join(parts, "\n\n---\n\n")
}

// shortened cuts a text that is too long after a line or a sentence.
func shortened(text string) string {
	runes := []rune(text)
	if len(runes) <= maxSection {
		return text
	}
	text = string(runes[:maxSection])
	if end := max(strings.LastIndexByte(text, '\n'), strings.LastIndex(text, ". ")+1); end > 0 {
		text = text[:end]
	}
	return strings.TrimSpace(text) + " …"
}

// search is every section that has one of the words, best first. Rare words count for more than common ones, words of a title
// for more than those of the text, and repeating one says ever less.
func search(query string) []section {
	terms := words(query)
	terms = slices.Compact(slices.Sorted(slices.Values(terms[:min(len(terms), maxTerms)])))
	sections := allSections()
	texts := make([]map[string]float64, len(sections))
	holders := map[string]int{}
	for i, s := range sections {
		texts[i] = weights(s)
		for _, term := range terms {
			if texts[i][term] > 0 {
				holders[term]++
			}
		}
	}
	scores := map[int]float64{}
	for i := range sections {
		for _, term := range terms {
			if n := texts[i][term]; n > 0 {
				rarity := math.Log(1 + float64(len(sections))/float64(holders[term]))
				scores[i] += rarity * n / (n + 1 + float64(len(texts[i]))/100) // in a long section a word says less
			}
		}
	}
	var order []int
	for i := range sections {
		if scores[i] > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	var found []section
	for _, i := range order {
		found = append(found, sections[i])
	}
	return found
}

// weights is how much a section says of each word.
func weights(s section) map[string]float64 {
	w := map[string]float64{}
	for _, word := range words(s.Text) {
		w[word]++
	}
	for _, word := range words(s.Title) {
		w[word] += 10
	}
	for _, word := range words(s.Page) {
		w[word] += 3 // each section of the page has it
	}
	return w
}

// words are compared without case and without a plural's s. Of one with hyphens, such as a key, the parts are words as well.
func words(text string) (list []string) {
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' }) {
		if w = strings.Trim(w, "-"); len(w) > 3 {
			w = strings.TrimSuffix(w, "s")
		}
		if w != "" {
			list = append(list, w)
		}
		if strings.Contains(w, "-") {
			list = append(list, strings.FieldsFunc(w, func(r rune) bool { return r == '-' })...)
		}
	}
	return list
}

// allSections is the manual, page by page, without synopses and references, which only list names.
func allSections() (all []section) {
	names, err := fs.Glob(Pages(), "*.[157]")
	if err != nil {
		return nil // the pattern is a constant
	}
	for _, name := range names {
		all = append(all, sections(name)...)
	}
	return slices.DeleteFunc(all, func(s section) bool { return s.Title == "SYNOPSIS" || s.Title == "SEE ALSO" })
}
