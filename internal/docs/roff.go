package docs

import "strings"

// cut reads one page. It knows what our pages use of roff: whoever adds a macro to them that is not known here gets its
// arguments as text.
func cut(page, roff string) (sections []Section) {
	var current *Section
	var lines []string
	end := func() {
		if current != nil {
			current.Text = strings.TrimSpace(strings.Join(lines, "\n"))
			sections = append(sections, *current)
		}
		lines = nil
	}
	major := ""
	for line := range strings.SplitSeq(roff, "\n") {
		macro, rest, _ := strings.Cut(line, " ")
		switch {
		case macro == ".SH" || macro == ".SS":
			end()
			title := plain(arguments(rest, " "))
			if macro == ".SH" {
				major = title
			} else {
				title = major + ": " + title
			}
			current = &Section{Page: page, Title: title}
		case current == nil:
		case macro == ".PP" || macro == ".TP":
			lines = append(lines, "")
		case strings.HasPrefix(line, `.\"`), silent(macro):
		case strings.HasPrefix(macro, "."):
			separator := ""
			if macro == ".B" || macro == ".I" {
				separator = " "
			}
			lines = append(lines, plain(arguments(rest, separator)))
		default:
			lines = append(lines, plain(line))
		}
	}
	end()
	return sections
}

// silent macros only say how a page is set.
func silent(macro string) bool {
	switch macro {
	case ".TH", ".nh", ".ad", ".br", ".fi", ".nf", ".EX", ".EE":
		return true
	}
	return false
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
		`\(bu`, "*", `\(dq`, `"`, `\(ha`, "^", `\(ga`, "`", `\(en`, "–", `\e`, `\`, `\&`, "").Replace(s)
}
