package ui

import (
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/store"
)

// mostRemembered is the number of texts that a history keeps.
const mostRemembered = 1000

// longestRemembered is the length in bytes from which a text is not kept: a pasted file.
const longestRemembered = 8 << 10

// History is what was typed at a prompt, in a file that only the owner can read, one text in a line as JSON.
type History struct {
	path  string
	hides func(text string) bool // reports whether a text must not be kept
	texts []string               // oldest first
}

// OpenHistory reads a history. A missing file is an empty history; a line of the file that is broken is left out.
func OpenHistory(path string, hides func(text string) bool) (*History, error) {
	h := &History{path: path, hides: hides}
	lines := 0
	for text, err := range store.Lines[string](path, nil) {
		if err != nil {
			return h, err
		}
		lines++
		h.remember(cleared(text))
	}
	if lines < 2*mostRemembered {
		return h, nil
	}
	surplus := lines - mostRemembered
	return h, store.FilterLines(path, func(string) bool {
		surplus--
		return surplus < 0
	})
}

// Add keeps a text, unless it is the last one again, is very long or must not be kept. Its error is that of the file.
func (h *History) Add(text string) error {
	if text == "" || len(text) > longestRemembered || h.hides(text) || len(h.texts) > 0 && h.texts[len(h.texts)-1] == text {
		return nil
	}
	h.remember(text)
	if h.path == "" {
		return nil
	}
	return store.AppendJSON(h.path, store.Buffered, text)
}

func (h *History) remember(text string) {
	h.texts = append(h.texts, text)
	if over := len(h.texts) - mostRemembered; over > 0 {
		h.texts = slices.Delete(h.texts, 0, over)
	}
}

// find returns the index of the newest text before an index that contains a part; -1 if there is none.
func (h *History) find(part string, before int) int {
	for i := min(before, len(h.texts)) - 1; i >= 0; i-- {
		if strings.Contains(h.texts[i], part) {
			return i
		}
	}
	return -1
}
