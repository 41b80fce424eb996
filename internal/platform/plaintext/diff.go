package plaintext

import (
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Diff returns the lines that only before has, each with "- " in front, and those that only after has, each with "+ ", in the order of a
// unified diff.
func Diff(before, after []byte) string {
	var out strings.Builder
	for line := range strings.Lines(Unified(before, after)) {
		if line[0] == '-' || line[0] == '+' {
			out.WriteString(line[:1] + " " + line[1:])
		}
	}
	return out.String()
}

// Unified returns the hunks of a unified diff, with three lines of context; "" if the texts are equal.
func Unified(before, after []byte) string {
	const header = 3 // diff, ---, +++
	var out strings.Builder
	n := 0
	for line := range strings.Lines(string(diff.Diff("", before, "", after))) {
		if n++; n > header {
			out.WriteString(line)
		}
	}
	return out.String()
}
