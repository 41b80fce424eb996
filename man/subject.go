package man

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Entry is a page in a list of pages.
type Entry struct {
	File    string // such as ollim-sessions.7
	Summary string // what NAME says about it
}

// Name returns the name that man and readers use, such as ollim-sessions(7).
func (e Entry) Name() string {
	stem, number, _ := strings.Cut(e.File, ".")
	return stem + "(" + number + ")"
}

// Topic returns the words by which help finds the page, such as sessions for ollim-sessions(7) and 5 routine for ollim-routine(5).
func (e Entry) Topic() string {
	stem, number, _ := strings.Cut(strings.TrimPrefix(e.File, "ollim-"), ".")
	if number == "7" {
		return stem
	}
	return number + " " + stem
}

// Section lists the pages of a section, by name, that of ollim first.
func Section(number string) (list []Entry) {
	files, err := fs.Glob(pages, "*."+number)
	if err != nil {
		return nil // the number is a digit
	}
	plain := escapes()
	for _, file := range files {
		_, rest, _ := strings.Cut(text(file), "\n.SH NAME\n")
		line, _, _ := strings.Cut(rest, "\n")
		_, summary, _ := strings.Cut(plain.Replace(line), " - ")
		list = append(list, Entry{file, summary})
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return strings.Compare(a.Name(), b.Name()) })
	return list
}

// Contents returns the list of the pages of a section as text.
func Contents(number string) string {
	list, width := Section(number), 0
	for _, e := range list {
		width = max(width, len(e.Name()))
	}
	var text strings.Builder
	for _, e := range list {
		fmt.Fprintf(&text, "%-*s  %s\n", width, e.Name(), e.Summary)
	}
	return text.String()
}

// About returns the pages of sections 5 and 7 that list one of the commands, such as "ollim session list", under SEE ALSO.
func About(commands ...string) (list []Entry) {
	for _, e := range slices.Concat(Section("5"), Section("7")) {
		_, see, _ := strings.Cut(text(e.File), "\n.SH SEE ALSO")
		if slices.ContainsFunc(commands, func(command string) bool {
			return strings.Contains(see, "\n.BR "+strings.NewReplacer(" ", `\-`, "-", `\-`).Replace(command)+" (1)")
		}) {
			list = append(list, e)
		}
	}
	return list
}

// Titled returns the topics of the pages of section 7 in which a title has a word.
func Titled(word string) (topics []string) {
	wanted := words(word)
	for _, e := range Section("7") {
		if slices.ContainsFunc(sections(e.File), func(s section) bool {
			return len(wanted) > 0 && slices.Contains(words(s.Title), wanted[0])
		}) {
			topics = append(topics, e.Topic())
		}
	}
	return topics
}
