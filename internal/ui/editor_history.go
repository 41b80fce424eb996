package ui

import (
	"context"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/store"
)

// mostRemembered is the number of texts that a history keeps.
const mostRemembered = 1000

// longestRemembered is the length in bytes from which a text is not kept: a pasted file.
const longestRemembered = 8 << 10

// History is what was typed at a prompt, in a file that only the owner can read, one text in a line as JSON. It is changed under a lock:
// several prompts may share it.
type History struct {
	path, lock string
	disk       store.Disk
	hides      func(text string) bool // reports whether a text must not be kept
	texts      []string               // oldest first
}

// OpenHistory reads a history, and shortens a file that has become long. A missing file is an empty history; a broken line is left out.
func OpenHistory(ctx context.Context, disk store.Disk, path, lock string, hides func(text string) bool) (*History, error) {
	h := &History{path: path, lock: lock, disk: disk, hides: hides}
	lines, err := h.read()
	if err != nil || lines < 2*mostRemembered {
		return h, err
	}
	return h, disk.Locked(ctx, lock, func() error {
		h.texts = nil
		lines, err := h.read() // another process may have shortened it
		surplus := lines - mostRemembered
		if err != nil || surplus <= 0 {
			return err
		}
		return store.FilterLines(path, func(string) bool {
			surplus--
			return surplus < 0
		})
	})
}

// read reads the file, and returns how many texts it has.
func (h *History) read() (lines int, err error) {
	for text, err := range store.Lines[string](h.path, nil) {
		if err != nil {
			return lines, err
		}
		lines++
		h.remember(cleared(text))
	}
	return lines, nil
}

// Add keeps a text, unless it is the last one again, is very long or must not be kept. Its error is that of the file.
func (h *History) Add(ctx context.Context, text string) error {
	if text == "" || len(text) > longestRemembered || h.hides(text) || len(h.texts) > 0 && h.texts[len(h.texts)-1] == text {
		return nil
	}
	h.remember(text)
	if h.path == "" {
		return nil
	}
	return h.disk.Locked(ctx, h.lock, func() error { return store.AppendJSON(h.path, store.Buffered, text) })
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
