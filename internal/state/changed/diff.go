package changed

import (
	"bytes"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// lines is a value with one newline behind its last line; nothing, and a newline alone, have no lines.
func lines(value []byte) []byte {
	value = bytes.TrimSuffix(value, []byte("\n"))
	if len(value) == 0 {
		return nil
	}
	return append(bytes.Clone(value), '\n')
}

// difference is the lines of a unified diff that are not in both.
func difference(before, after []byte) string {
	const header = 3 // diff, ---, +++
	var out strings.Builder
	n := 0
	for line := range strings.Lines(string(diff.Diff("", before, "", after))) {
		if n++; n > header && (line[0] == '-' || line[0] == '+') {
			out.WriteString(line[:1] + " " + line[1:])
		}
	}
	return out.String()
}
