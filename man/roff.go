package man

import "strings"

// cut reads one page. It knows what our pages use of roff: the arguments of a macro that is not known here are text.
func cut(page, roff string) []Section {
	r := reader{page: page}
	for line := range strings.SplitSeq(roff, "\n") {
		r.line(line)
	}
	r.end()
	return r.sections
}

// reader turns the lines of a page into sections, in which a paragraph is one line.
type reader struct {
	page     string
	sections []Section
	major    string   // title of the last .SH
	inside   bool     // a section has begun
	lines    []string // of the section
	words    []string // of the paragraph
	verbatim bool     // lines stand as they are
	label    bool     // the next line is a paragraph of its own: what .TP explains
}

func (r *reader) line(line string) {
	macro, rest, _ := strings.Cut(line, " ")
	switch {
	case macro == ".SH" || macro == ".SS":
		r.begin(macro == ".SH", plain(arguments(rest, " ")))
	case !r.inside, strings.HasPrefix(line, `.\"`), macro == ".TH", macro == ".nh", macro == ".ad":
	case macro == ".nf" || macro == ".EX":
		r.stop()
		r.verbatim = true
	case macro == ".fi" || macro == ".EE":
		r.verbatim = false
	case macro == ".br":
		r.stop()
	case macro == ".PP" || macro == ".TP" || macro == ".IP" || line == "" && !r.verbatim:
		r.stop()
		r.lines, r.label = append(r.lines, ""), macro == ".TP" || r.label && line == ""
	case macro == ".B" || macro == ".I":
		r.text(plain(arguments(rest, " ")))
	case strings.HasPrefix(macro, "."):
		r.text(plain(arguments(rest, "")))
	default:
		r.text(plain(line))
	}
}

// text adds a line of text to the paragraph. One that begins with white space begins a new line, as it does in roff.
func (r *reader) text(text string) {
	switch {
	case r.verbatim:
		r.lines = append(r.lines, text)
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
		r.label = false
	}
}

// stop ends the paragraph, without a blank line.
func (r *reader) stop() {
	if len(r.words) > 0 {
		r.lines, r.words = append(r.lines, strings.Join(r.words, " ")), nil
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
	r.sections, r.inside = append(r.sections, Section{Page: r.page, Title: title}), true
}

// end ends the section.
func (r *reader) end() {
	r.stop()
	if r.inside {
		text := strings.TrimSpace(strings.Join(r.lines, "\n"))
		for strings.Contains(text, "\n\n\n") {
			text = strings.ReplaceAll(text, "\n\n\n", "\n\n")
		}
		r.sections[len(r.sections)-1].Text = text
	}
	r.lines, r.verbatim, r.label = nil, false, false
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

// plain resolves the escapes.
func plain(s string) string {
	return strings.NewReplacer(`\fB`, "", `\fI`, "", `\fP`, "", `\fR`, "", `\-`, "-", `\(ti`, "~", `\(aq`, "'", `\(em`, "—",
		`\(bu`, "*", `\(dq`, `"`, `\(ha`, "^", `\(ga`, "`", `\(en`, "–", `\e`, `\`, `\&`, "", `\ `, " ").Replace(s)
}
