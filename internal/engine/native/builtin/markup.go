package builtin

import (
	"bytes"
	"html"
	"strings"
)

// This file does what Tokenizer.Text and Tokenizer.TagAttr of x/net/html do. A program that calls those builds a map of 2,231 entities at
// every start, even if it reads no page. The standard library builds its map when it is first used. (It does not decode &#9 without a
// semicolon.)

const blanks = " \n\r\t\f"

// content returns the text of a text token from its bytes in the page. In an element such as title NUL bytes are removed, and in an
// element such as plaintext entities are not decoded.
func content(raw []byte, element string) string {
	text := newlines(string(raw))
	if element != "" {
		text = noNUL(text)
	}
	if element == "xmp" || element == "plaintext" {
		return text
	}
	return html.UnescapeString(text)
}

func newlines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

func noNUL(s string) string { return strings.ReplaceAll(s, "\x00", "\uFFFD") }

// attribute returns the value of the attribute with a name in lower case, from the bytes of a start tag; "" if there is none. The first
// of several counts.
func attribute(tag []byte, name string) string {
	rest := tag[min(len(tag), 1):]
	rest = rest[until(rest, blanks+"/>"):]
	for {
		rest = bytes.TrimLeft(rest, blanks)
		if len(rest) == 0 || rest[0] == '>' {
			return ""
		}
		end := until(rest[1:], blanks+"=/>") + 1
		if rest[0] == '/' {
			end = 0
		}
		key := rest[:end]
		var value []byte
		value, rest = attributeValue(rest[end:])
		if strings.EqualFold(string(key), name) {
			return unescapeAttribute(newlines(noNUL(string(value))))
		}
	}
}

// attributeValue splits the text after the name of an attribute into the value, if there is one, and the rest of the tag.
func attributeValue(s []byte) (value, rest []byte) {
	s = bytes.TrimLeft(s, blanks)
	switch {
	case len(s) == 0:
		return nil, nil
	case s[0] == '/':
		return nil, s[1:]
	case s[0] != '=':
		return nil, s
	}
	s = bytes.TrimLeft(s[1:], blanks)
	if len(s) > 0 && (s[0] == '\'' || s[0] == '"') {
		value, rest, _ = bytes.Cut(s[1:], s[:1])
		return value, rest
	}
	end := until(s, blanks+">")
	return s[:end], s[end:]
}

// until returns the index of the first byte of s that is in stops; the length of s if there is none.
func until(s []byte, stops string) int {
	if i := bytes.IndexAny(s, stops); i >= 0 {
		return i
	}
	return len(s)
}

// unescapeAttribute is html.UnescapeString for the value of an attribute. There, a name without a semicolon counts only as a whole and
// not before an equals sign: ?a=1&copy=2 is an address.
func unescapeAttribute(s string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "&")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		numeric := strings.HasPrefix(rest, "#")
		name := strings.TrimPrefix(rest, "#")
		name = name[:len(name)-len(strings.TrimLeftFunc(name, alphanumeric))]
		end := len(name)
		if numeric {
			end++
		}
		closed := end < len(rest) && rest[end] == ';'
		if closed {
			end++
		}
		reference := "&" + rest[:end]
		text := html.UnescapeString(reference)
		part := end < 2 || strings.HasSuffix(text, reference[len(reference)-2:]) || !closed && text[len(text)-1] == reference[len(reference)-1]
		if !numeric && (part || !closed && strings.HasPrefix(rest[end:], "=")) {
			text = reference
		}
		out.WriteString(text)
		s = rest[end:]
	}
}

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}
