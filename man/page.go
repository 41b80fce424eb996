package man

import (
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

// Find returns the file of the page that a name means: ollim-routine(5) and ollim-routine.5 name one page, and ollim-routine is
// looked for in the sections 7, 5 and 1, since the help of the command has what section 1 says.
func Find(name string) (file string, found bool) {
	if stem, number, cut := strings.Cut(name, "("); cut {
		name = stem + "." + strings.TrimSuffix(number, ")")
	}
	if !strings.HasPrefix(name, "ollim") {
		return "", false
	}
	for _, file := range []string{name, name + ".7", name + ".5", name + ".1"} {
		if _, err := fs.Stat(pages, file); err == nil && path.Ext(file) != "" {
			return file, true
		}
	}
	return "", false
}

// text returns the page of a file in roff.
func text(file string) string {
	page, _ := pages.ReadFile(file) // the files are in the binary
	return string(page)
}

// sections cuts the page of a file.
func sections(file string) []section {
	stem, number, _ := strings.Cut(file, ".")
	return cut(stem+"("+number+")", text(file))
}

// How a page is laid out, in characters.
const (
	pageWidth   = 78
	textIndent  = 7
	minorIndent = 3
	deepIndent  = 4
)

// Plain returns the page of a file as plain text, for where there is no man command. Its lines have at most width columns, which is
// 78 if width is 0 or more than that.
func Plain(file string, width int) string {
	if width = min(width, pageWidth); width <= 0 {
		width = pageWidth
	}
	var page strings.Builder
	for i, s := range sections(file) {
		if i == 0 {
			page.WriteString(s.Page + "\n")
		}
		title := s.Title
		if s.minor {
			_, title, _ = strings.Cut(title, ": ")
			title = strings.Repeat(" ", minorIndent) + title
		}
		page.WriteString("\n" + title + "\n")
		for n, l := range s.lines {
			if l.text != "" || n > 0 && n < len(s.lines)-1 { // blank lines are between paragraphs
				l.layOut(&page, width)
			}
		}
	}
	return page.String()
}

// layOut writes a line with its indent. A paragraph is broken into lines.
func (l line) layOut(page *strings.Builder, width int) {
	text := strings.TrimLeft(l.text, " ")
	indent := textIndent + l.depth*deepIndent
	if l.verbatim {
		text = l.text
	} else if text != l.text {
		indent += deepIndent
	}
	if text == "" {
		page.WriteString("\n")
		return
	}
	margin := strings.Repeat(" ", indent)
	if l.verbatim {
		page.WriteString(margin + text + "\n")
		return
	}
	column := 0
	if mark, _, _ := strings.Cut(text, " "); mark == "*" || strings.Trim(mark, "0123456789") == "." { // of an item in a list
		page.WriteString(margin + mark)
		column = indent + len(mark)
		text, margin = text[len(mark):], margin+strings.Repeat(" ", len(mark)+1)
	}
	for word := range strings.FieldsSeq(text) {
		long := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			page.WriteString(margin)
			column = indent
		case column+1+long > width:
			page.WriteString("\n" + margin)
			column = len(margin)
		default:
			page.WriteByte(' ')
			column++
		}
		page.WriteString(word)
		column += long
	}
	page.WriteByte('\n')
}
