package model

import (
	"fmt"
	"slices"
	"strings"
)

// Merge merges the lines of a text in the form of models.txt into the owner's lines. A line for a model that the owner's lines have
// changes those keys of the last of them; any other line is added at the end. The order of the owner's lines stays. The error is a
// *BadLine.
func Merge(name, text string, own []string) ([]string, error) {
	merged, number := slices.Clone(own), 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var err error
		if merged, err = mergeLine(merged, line); err != nil {
			return nil, &BadLine{fmt.Sprintf("%s:%d: %v", name, number, err)}
		}
	}
	return merged, nil
}

// BadLine is the error of an invalid line. It names the line as name:LINE, the model and the key.
type BadLine struct{ reason string }

func (e *BadLine) Error() string { return e.reason }

func mergeLine(own []string, line string) ([]string, error) {
	if _, err := parse(line); err != nil {
		return nil, err
	}
	words := strings.Fields(line)
	i := lastOf(own, words[0])
	if i < 0 {
		own, i = append(own, ""), len(own)
	}
	own[i] = overlay(strings.Fields(own[i]), words)
	_, err := Known().With([]string{own[i]})
	return own, err
}

// lastOf returns the index of the last line for a model, -1 if there is none.
func lastOf(lines []string, id string) int {
	for i, line := range slices.Backward(lines) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == id {
			return i
		}
	}
	return -1
}

// overlay returns a line with the keys of another one, in its own order. words and by begin with the id.
func overlay(words, by []string) string {
	if len(words) == 0 {
		return strings.Join(by, " ")
	}
	for _, word := range by[1:] {
		key, _, _ := strings.Cut(word, "=")
		i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, key+"=") })
		if i < 0 {
			words = append(words, word)
		} else {
			words[i] = word
		}
	}
	return strings.Join(words, " ")
}
