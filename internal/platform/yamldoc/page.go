package yamldoc

import (
	"bytes"
	"strings"
)

// Page is a Markdown file with frontmatter. It is immutable.
type Page struct {
	Doc  *Doc
	Body string // everything after the closing --- line, as written

	opening, closing string // the two --- lines and the text around them, as written
}

const bom = "\ufeff"

// ParsePage parses a Markdown file. Its first line must be exactly ---. The next such line ends the frontmatter, and any later --- is
// text. A byte order mark and CRLF are accepted. The error is a Faults.
func ParsePage(file string, data []byte) (*Page, error) {
	text := string(data)
	opening, _, found := strings.Cut(text, "\n")
	if strings.TrimSuffix(strings.TrimPrefix(opening, bom), "\r") != "---" || !found {
		return nil, Faults{{File: file, Line: 1, Reason: "does not open with a --- line (frontmatter)"}}
	}
	start := len(opening) + 1
	end, closing := start, ""
	for line := range strings.Lines(text[start:]) {
		if strings.TrimRight(line, "\r\n") == "---" {
			closing = line
			break
		}
		end += len(line)
	}
	if closing == "" {
		return nil, Faults{{File: file, Line: 1, Reason: "the frontmatter that opens here is never closed by a --- line"}}
	}
	doc, err := Parse(file, []byte(text[start:end]), 2)
	if err != nil {
		return nil, err
	}
	return &Page{Doc: doc, Body: text[end+len(closing):], opening: text[:start], closing: closing}, nil
}

// NewPage returns the text of a new file: pairs as frontmatter, then body and one newline.
func NewPage(pairs []Pair, body string) ([]byte, error) {
	head, err := Encode(pairs)
	if err != nil {
		return nil, err
	}
	return []byte("---\n" + string(head) + "---\n" + body + "\n"), nil
}

// With returns the text of the page with other frontmatter. All other bytes are unchanged.
func (p *Page) With(doc *Doc) []byte {
	return bytes.Join([][]byte{[]byte(p.opening), doc.text, []byte(p.closing), []byte(p.Body)}, nil)
}
