package cli

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/ui"
)

// TestHanging: the text of a long item goes on below itself.
func TestHanging(t *testing.T) {
	for line, want := range map[string]string{
		"How messages reach you, said at some length": "How messages reach you, said\nat some length",
		"  file     appends them to a file":           "  file     appends them to a\n           file",
		"  a word, or many more words than fit":       "  a word, or many more words\n  than fit",
		"":                                            "",
	} {
		if got := strings.Join(ui.Wrap(line, 28, hanging(line)), "\n"); got != want {
			t.Errorf("%q is broken into\n%s\nnot\n%s", line, got, want)
		}
	}
}
