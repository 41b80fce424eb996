package yamldoc

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// syntax converts an error of the library to a fault. By far the most common cause is a value that needs quotes, above all in `cron: * *
// * * *`: YAML takes the star for an alias, and the library's message does not say that quotes help.
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

// breaksAtWork limits the work of breaksAt, in bytes parsed. It takes about a quarter of a second.
const breaksAtWork = 4 << 20

// breaksAt returns the line, from 1, that makes a text invalid: the first line after its longest valid beginning. (The library's own line
// number is one too low for some errors and missing for others.) It returns 0 if the text is too long for that.
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

// unquoted returns why the value on an invalid line must be quoted; "" if that is not the cause.
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

// oddity finds a byte that is not UTF-8, which YAML would take for UTF-16, or a character that only YAML counts as the end of a line.
// With one of them, lines of YAML would not be lines of the file. at is -1 if there is none.
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
