package approval

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
)

// Difference returns what s adds to the last approval and what it lacks, in lines for a person: `KEY: + VALUE`, `KEY: -
// VALUE`, `file: PATH changed`. It lists everything, with invisible characters as escapes. It is empty when s is
// approved.
func (b Book) Difference(s Subject) ([]string, error) {
	last, known, err := b.Last(s.Key)
	if err != nil || known && last.Digest == s.Digest() {
		return nil, err
	}
	lines := last.difference(s)
	if len(lines) == 0 {
		last = Approval{} // an entry edited by hand: only the digest differs
		lines = last.difference(s)
	}
	for _, name := range sortedKeys(s.Files) {
		if digest := s.Files[name]; digest != missingFile && digest != last.Files[name] {
			lines = append(lines, b.contents(name, last.Files[name], digest)...)
		}
	}
	return lines, nil
}

// maxShown is the part of a file that is shown, in bytes; the owner must open a larger file.
const maxShown = 64 << 10

// contents returns the lines of a file that is to be approved, because its content matters, not its name. If the approved bytes, whose
// digest is before, are known, it returns what has changed.
func (b Book) contents(name, before, digest string) (lines []string) {
	path := b.Home.Path(name)
	if target, err := os.Readlink(path); err == nil {
		lines = append(lines, name+": is a link to "+legible(target))
	}
	data, err := store.ReadText(path, maxBytes, false)
	switch sum := sha256.Sum256(data); {
	case err != nil:
		return append(lines, name+": cannot be shown: "+store.Cause(err))
	case hex.EncodeToString(sum[:]) != digest:
		return append(lines, name+": was changed this moment")
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		return append(lines, fmt.Sprintf("%s: %d bytes, not text", name, len(data)))
	}
	if changes := b.changes(before, data); len(changes) > 0 {
		for _, line := range changes {
			lines = append(lines, name+": "+line)
		}
		return lines
	}
	first := data[:min(len(data), maxShown)]
	for _, line := range split(strings.TrimRight(string(first), "\n")) {
		lines = append(lines, name+": | "+legible(line))
	}
	if len(data) > maxShown {
		lines = append(lines, fmt.Sprintf("%s: and %d more bytes", name, len(data)-maxShown))
	}
	return lines
}

// changes returns a unified diff from the approved bytes with a digest to data, with invisible characters as escapes; nothing if those
// bytes are not known, or if no difference can be shown.
func (b Book) changes(approved string, data []byte) (lines []string) {
	if len(data) > maxShown {
		return nil
	}
	before, err := b.objects().Get(approved)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(plaintext.Unified(shown(before), shown(data))) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	return lines
}

// shown returns a text with its invisible characters as escapes, and a newline at its end.
func shown(data []byte) []byte {
	var b strings.Builder
	for _, line := range split(strings.TrimRight(string(data), "\n")) {
		b.WriteString(legible(line) + "\n")
	}
	return []byte(b.String())
}

func (a Approval) difference(s Subject) (lines []string) {
	say := func(key string, changes ...string) {
		for _, c := range changes {
			lines = append(lines, key+": "+c)
		}
	}
	if a.Kind != "" {
		say("kind", edits([]string{a.Kind}, []string{s.Kind})...)
	}
	had := a.Fields.each()
	for i, f := range s.Fields.each() {
		say(f.key, edits(had[i].values, f.values)...)
	}
	for _, name := range sortedKeys(a.Files) {
		if _, still := s.Files[name]; !still {
			say("file", legible(name)+" removed")
		}
	}
	for _, name := range sortedKeys(s.Files) {
		switch before, known := a.Files[name]; {
		case s.Files[name] == before:
		case s.Files[name] == missingFile:
			say("file", legible(name)+" missing")
		case known:
			say("file", legible(name)+" changed")
		default:
			say("file", legible(name)+" added")
		}
	}
	say("body", edits(split(a.Body), split(s.Body))...)
	return lines
}

func split(body string) []string {
	if body == "" {
		return nil
	}
	return strings.Split(body, "\n")
}

// edits returns the lines to remove ("- ") and to add ("+ ") that turn a into b, in order.
func edits(a, b []string) (out []string) {
	text := func(lines []string) []byte {
		var b strings.Builder
		for _, line := range lines {
			b.WriteString(legible(line) + "\n")
		}
		return []byte(b.String())
	}
	for line := range strings.Lines(plaintext.Diff(text(a), text(b))) {
		out = append(out, strings.TrimSuffix(line, "\n"))
	}
	return out
}

// legible escapes characters that are invisible or would reorder the text around them, so that nothing is approved
// unseen.
func legible(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if unicode.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(s[:n])
		} else {
			quoted := strconv.Quote(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[n:]
	}
	return b.String()
}
