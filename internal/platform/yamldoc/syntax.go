package yamldoc

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// syntax turns an error of the library into a fault. Values that had to be quoted, above all an unquoted
// `cron: * * * * *`, are by far the commonest: YAML takes the star for an alias and complains in its own words.
func (d *Doc) syntax(err error) *Fault {
	line := breaksAt(d.text)
	if line > 0 {
		key, value, why := unquoted(d.lines()[line-1])
		if why != "" {
			return d.fault(line, key, fmt.Sprintf("%s must be quoted: %s: %q", why, key, value))
		}
	}
	reason, foreign := strings.CutPrefix(strings.SplitN(err.Error(), "\n", 2)[0], "yaml: ")
	if foreign {
		if place, rest, found := strings.Cut(reason, ": "); found && strings.HasPrefix(place, "line ") {
			reason = rest
		}
		reason = "not valid YAML: " + reason
	}
	return d.fault(line, "", reason)
}

// breaksAtWork bounds the work of breaksAt, in bytes parsed: a quarter of a second.
const breaksAtWork = 4 << 20

// breaksAt is the line, from 1, with which a text that is no document stops being one: the first after its longest good
// beginning. (The library's own line is one too low for some errors and missing for others.) 0 when the text is too long
// for that.
func breaksAt(text []byte) int {
	lines := bytes.SplitAfter(text, []byte("\n"))
	end, work := len(text), 0
	for n := len(lines); n > 0 && work < breaksAtWork; n-- {
		end -= len(lines[n-1])
		work += end
		if root, err := read(text[:end]); err == nil && root.Kind == yaml.MappingNode {
			return n
		}
	}
	return 0
}

// unquoted says why the value of a line that breaks a document must be quoted; "" when that is not the reason.
func unquoted(line string) (key, value, why string) {
	key, value, _ = strings.Cut(strings.TrimSpace(line), ": ")
	value, _, _ = strings.Cut(value, " #")
	value = strings.TrimSpace(value)
	switch {
	case value == "", strings.ContainsAny(value[:1], "\"'[{|>"):
	case strings.ContainsAny(value[:1], "*@`%"):
		why = "a value that starts with " + value[:1]
	case strings.Contains(value, ": ") || strings.HasSuffix(value, ":"):
		why = "a value with a colon"
	}
	return key, value, why
}

// oddity finds a byte that is not UTF-8, which YAML would take for UTF-16, or a character that YAML counts as the end of a
// line and nobody else does: with one of them, lines of YAML would not be lines of the file. at is -1 when there is none.
func oddity(text []byte) (at int, reason string) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return i, "not valid UTF-8"
		case r == '\r' && !bytes.HasPrefix(text[i:], []byte("\r\n")), r == 0x85, r == 0x2028, r == 0x2029:
			return i, fmt.Sprintf("the line break %U is not supported; use a newline", r)
		}
		i += size
	}
	return -1, ""
}
