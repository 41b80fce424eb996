// Package task stores the owner's tasks in the todo.txt format, one per line. The file belongs to a person: everything that
// this package does not change stays byte for byte as it was, including foreign key:value words, odd spacing, comments, blank
// lines, line ends and a missing last one. Reading accepts anything; Add and Edit check what they write.
//
// A task's number is the number of its line, from 1. Done and Remove keep every other number: a removed task leaves a blank
// line, as todo.txt-cli does by default, so that a number that was shown before never means another task. A line that begins
// with # like a heading ("# ", "## ") is a comment, not a task.
//
// On disk: tasks/todo.txt, replaced whole under the lock "tasks". An editor does not take that lock: if it saves at the same
// moment, the later write wins.
package task

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Task is one line, parsed. Dates are YYYY-MM-DD, or "" if there is none.
type Task struct {
	Number    int    `json:"number"` // number of the line, from 1
	Done      bool   `json:"done"`
	Priority  string `json:"priority,omitempty"` // "A" to "Z"; a completed task has pri:A in Extensions instead
	Completed string `json:"completed,omitempty"`
	Created   string `json:"created,omitempty"`
	Due       string `json:"due,omitempty"` // date of the first due: word that has one

	Projects []string `json:"projects"` // without their +, never nil
	Contexts []string `json:"contexts"` // without their @, never nil
	// Text is the line without the mark, priority and dates, but with its +projects, @contexts and key:value words.
	Text string `json:"text"`
	// Extensions are the key:value words, without Due; of equal keys the first counts. A due: that is no date is among them.
	Extensions map[string]string `json:"extensions"` // never nil
}

// parse parses a line. It returns false if the line holds no task.
func parse(line string) (Task, bool) {
	if strings.TrimSpace(line) == "" || isComment(line) {
		return Task{}, false
	}
	rest, done := strings.CutPrefix(line, "x ")
	if !done {
		return parseOpen(line), true
	}
	t := Task{Done: true}
	t.Priority, rest = cutPriority(strings.TrimLeft(rest, " \t"))
	if t.Completed, rest = cutDate(rest); t.Completed != "" {
		t.Created, rest = cutDate(rest)
	}
	t.read(rest)
	return t, true
}

// parseOpen parses the text of a task that is not done: an x at the beginning is a word.
func parseOpen(line string) (t Task) {
	t.Priority, line = cutPriority(line)
	t.Created, line = cutDate(line)
	t.read(line)
	return t
}

func (t *Task) read(text string) {
	t.Text = strings.TrimSpace(text)
	t.Due, t.Projects, t.Contexts, t.Extensions = "", []string{}, []string{}, map[string]string{}
	for _, word := range strings.Fields(t.Text) {
		key, value, isPair := pair(word)
		switch {
		case len(word) > 1 && word[0] == '+':
			t.Projects = append(t.Projects, word[1:])
		case len(word) > 1 && word[0] == '@':
			t.Contexts = append(t.Contexts, word[1:])
		case !isPair:
		case key == "due" && isDate(value):
			t.Due = cmp.Or(t.Due, value)
		default:
			if _, known := t.Extensions[key]; !known {
				t.Extensions[key] = value
			}
		}
	}
}

func (t Task) line() string {
	words := []string{"x", "(" + t.Priority + ")", t.Completed, t.Created, t.Text}
	if !t.Done {
		words[0] = ""
	}
	if t.Priority == "" {
		words[1] = ""
	}
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ")
}

// complete marks a task as done. Its priority becomes an extension, because only open tasks are sorted by it.
func (t *Task) complete(today string) {
	text := t.Text
	if _, kept := t.Extensions["pri"]; t.Priority != "" && !kept {
		text += " pri:" + t.Priority
	}
	t.Done, t.Completed, t.Priority = true, today, ""
	t.read(text)
}

func isComment(line string) bool {
	rest := strings.TrimLeft(line, "#")
	return rest != line && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// cutPriority removes "(A) " from the beginning.
func cutPriority(s string) (priority, rest string) {
	if len(s) > 3 && s[0] == '(' && s[1] >= 'A' && s[1] <= 'Z' && s[2:4] == ") " {
		return s[1:2], strings.TrimLeft(s[4:], " \t")
	}
	return "", s
}

// cutDate removes a date from the beginning. An impossible date is text.
func cutDate(s string) (date, rest string) {
	word, rest, _ := strings.Cut(s, " ")
	if !isDate(word) {
		return "", s
	}
	return word, strings.TrimLeft(rest, " \t")
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// pair splits a key:value word. An address such as https://x.org is not one, nor is a time such as 10:30.
func pair(word string) (key, value string, ok bool) {
	key, value, _ = strings.Cut(word, ":")
	if key == "" || value == "" || strings.HasPrefix(value, "//") || key[0] >= '0' && key[0] <= '9' {
		return "", "", false
	}
	return key, value, true
}
