package task

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxChars is the longest text of a task, in characters, that Add or Edit writes.
const maxChars = 4000

// None is the Draft.Priority that removes a priority.
const None = "none"

func wrong(format string, args ...any) error { return &Unfit{fmt.Sprintf(format, args...)} }

// Draft is the input for a new or changed task.
type Draft struct {
	// Text may begin with a priority, "(A) ", and a creation date, as in a line of the file. An x at the beginning is a word.
	Text string
	// Priority is "A" to "Z" or None, for a Text without one; "" keeps the present priority.
	Priority string
}

// task parses a draft. Priority, creation date and completion are those of old where the draft has none.
func (d Draft) task(old Task) (Task, error) {
	if err := check(d.Text); err != nil {
		return Task{}, err
	}
	t := parseOpen(strings.TrimSpace(d.Text))
	switch {
	case t.Text == "":
		return t, wrong("a task needs a text")
	case d.Priority != "" && t.Priority != "":
		return t, wrong("the priority is given twice")
	case d.Priority != None:
		t.Priority = cmp.Or(d.Priority, t.Priority, old.Priority)
	}
	t.Created = cmp.Or(t.Created, old.Created)
	t.Number, t.Done, t.Completed = old.Number, old.Done, old.Completed
	if !t.survives() {
		return t, wrong("%q would be read as a different field", t.line())
	}
	return t, nil
}

// survives reports whether a task's line is parsed as that task again. This fails for an x or a # at the beginning of a line, and for the
// creation date of a task that was completed without a date.
func (t Task) survives() bool {
	back, ok := parse(t.line())
	return ok && back.Done == t.Done && back.Priority == t.Priority && back.Completed == t.Completed && back.Created == t.Created &&
		back.Text == t.Text
}

// check returns an error if a text must not be written to the file.
func check(text string) error {
	switch {
	case strings.ContainsAny(text, "\n\r\u2028\u2029"):
		return wrong("a task is one line")
	case !utf8.ValidString(text) || strings.ContainsFunc(text, harmful):
		return wrong("control characters in the text")
	case utf8.RuneCountInString(text) > maxChars:
		return wrong("longer than %d characters", maxChars)
	}
	dues := 0
	for _, word := range strings.Fields(text) {
		value, isDue := strings.CutPrefix(word, "due:")
		if !isDue {
			continue
		}
		if dues++; !isDate(value) {
			return wrong("due:%s is not a date: want due:YYYY-MM-DD", value)
		}
	}
	if dues > 1 {
		return wrong("due: is given twice")
	}
	return nil
}

// harmful reports whether a character could move the cursor or change the direction of writing.
func harmful(r rune) bool {
	return unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
}
