package man

import (
	"slices"
	"strings"
)

// cut reads one page. It knows what our pages use of roff: the arguments of a macro that is not known here are text.
func cut(page, roff string) []section {
	r := reader{page: page, plain: escapes().Replace}
	for line := range strings.SplitSeq(roff, "\n") {
		r.line(line)
	}
	r.end()
	return r.sections
}

// reader turns the lines of a page into sections, in which a paragraph is one line.
type reader struct {
	page     string
	plain    func(string) string // resolves the escapes
	sections []section
	major    string   // title of the last .SH
	inside   bool     // a section has begun
	lines    []line   // of the section
	words    []string // of the paragraph
	verbatim bool     // lines stand as they are
	label    bool     // the next line is a paragraph of its own: what .TP explains
	nested   int      // depth of .RS
	deep     int      // of the paragraph, within that
}

// line is a line of a section: a paragraph, or one that stands as it is.
type line struct {
	text     string
	verbatim bool
	depth    int // how far it is indented
}

func (r *reader) line(line string) {
	macro, rest, _ := strings.Cut(line, " ")
	switch {
	case macro == ".SH" || macro == ".SS":
		r.begin(macro == ".SH", r.plain(arguments(rest, " ")))
	case !r.inside, strings.HasPrefix(line, `.\"`), macro == ".TH", macro == ".nh", macro == ".ad":
	case macro == ".nf" || macro == ".EX":
		r.stop()
		r.verbatim = true
	case macro == ".fi" || macro == ".EE":
		r.verbatim = false
	case macro == ".br":
		r.stop()
	case macro == ".RS" || macro == ".RE":
		r.stop()
		r.nested += map[string]int{".RS": 1, ".RE": -1}[macro]
	case macro == ".PP" || macro == ".TP" || macro == ".IP" || line == "" && !r.verbatim:
		r.paragraph(macro, r.plain(rest))
	case macro == ".B" || macro == ".I":
		r.text(r.plain(arguments(rest, " ")))
	case strings.HasPrefix(macro, "."):
		r.text(r.plain(arguments(rest, "")))
	default:
		r.text(r.plain(line))
	}
}

// paragraph ends the paragraph and begins another one.
func (r *reader) paragraph(macro, rest string) {
	r.stop()
	r.lines, r.label = append(r.lines, line{}), macro == ".TP" || r.label && macro == ""
	switch macro {
	case ".PP", ".TP":
		r.deep = 0
	case ".IP":
		r.deep = 1
		if mark, _, found := strings.Cut(rest, " "); found {
			r.words, r.deep = append(r.words, mark), 0
		}
	}
}

// text adds a line of text to the paragraph. One that begins with white space begins a new line, as it does in roff.
func (r *reader) text(text string) {
	switch {
	case r.verbatim:
		r.lines = append(r.lines, line{text, true, r.nested + r.deep})
		return
	case text == "":
		return
	case strings.TrimLeft(text, " \t") != text:
		r.stop()
		text = "  " + strings.TrimSpace(text)
	}
	r.words = append(r.words, text)
	if r.label {
		r.stop()
		r.label, r.deep = false, 1
	}
}

// stop ends the paragraph, without a blank line.
func (r *reader) stop() {
	if len(r.words) > 0 {
		r.lines, r.words = append(r.lines, line{strings.Join(r.words, " "), false, r.nested + r.deep}), nil
	}
}

// begin begins a section.
func (r *reader) begin(major bool, title string) {
	r.end()
	if major {
		r.major = title
	} else {
		title = r.major + ": " + title
	}
	r.sections, r.inside = append(r.sections, section{Page: r.page, Title: title, minor: !major}), true
}

// end ends the section.
func (r *reader) end() {
	r.stop()
	if r.inside {
		r.lines = slices.CompactFunc(r.lines, func(a, b line) bool { return a.text == "" && b.text == "" })
		texts := make([]string, len(r.lines))
		for i, l := range r.lines {
			texts[i] = l.text
		}
		s := &r.sections[len(r.sections)-1]
		s.Text, s.lines = strings.TrimSpace(strings.Join(texts, "\n")), r.lines
	}
	r.lines, r.verbatim, r.label, r.nested, r.deep = nil, false, false, 0, 0
}

// arguments splits a macro's line, in which "…" keeps spaces together, and joins them.
func arguments(rest, separator string) string {
	var list []string
	var word strings.Builder
	quoted := false
	for _, r := range rest {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ' ' && !quoted:
			list = append(list, word.String())
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return strings.Join(append(list, word.String()), separator)
}

// escapes resolves the escapes.
func escapes() *strings.Replacer {
	return strings.NewReplacer(`\fB`, "", `\fI`, "", `\fP`, "", `\fR`, "", `\-`, "-", `\(ti`, "~", `\(aq`, "'", `\(em`, "—",
		`\(bu`, "*", `\(dq`, `"`, `\(ha`, "^", `\(ga`, "`", `\(en`, "–", `\e`, `\`, `\&`, "", `\ `, " ", `\~`, " ")
}
