package task

import (
	"slices"
	"strings"
)

// byteOrderMark begins the files of some editors. It is not part of the first task.
const byteOrderMark = "\ufeff"

// file is the content of a todo.txt, with every byte.
type file struct {
	mark  string // byteOrderMark or ""
	lines []line
}

// line is a line and its end: "\n", "\r\n", or "" for a last line without an end.
type line struct{ text, end string }

func parseFile(data []byte) (f file) {
	text, marked := strings.CutPrefix(string(data), byteOrderMark)
	if marked {
		f.mark = byteOrderMark
	}
	for whole := range strings.SplitAfterSeq(text, "\n") {
		if whole == "" { // there is nothing after the last line end
			continue
		}
		l := line{text: strings.TrimSuffix(strings.TrimSuffix(whole, "\n"), "\r")}
		if l.end = whole[len(l.text):]; l.end == "\r" {
			l = line{text: whole}
		}
		f.lines = append(f.lines, l)
	}
	return f
}

func (f *file) bytes() []byte {
	var b strings.Builder
	b.WriteString(f.mark)
	for _, l := range f.lines {
		b.WriteString(l.text + l.end)
	}
	return []byte(b.String())
}

// tasks returns the tasks in the lines, in their order.
func (f *file) tasks() (list []Task) {
	for i, l := range f.lines {
		if t, ok := parse(l.text); ok {
			t.Number = i + 1
			list = append(list, t)
		}
	}
	return list
}

// add appends a line and returns its number.
func (f *file) add(text string) int {
	f.lines = append(f.lines, line{text, f.finish()})
	return len(f.lines)
}

func (f *file) set(number int, text string) { f.lines[number-1].text = text }

// remove makes a line blank. It keeps the line, even if it is the last, so that its number is not used again.
func (f *file) remove(number int) {
	f.finish()
	f.set(number, "")
}

// finish adds a missing end to the last line. It returns the end for a new line, which is that of the latest line that has one.
func (f *file) finish() (end string) {
	end = "\n"
	for _, l := range slices.Backward(f.lines) {
		if l.end != "" {
			end = l.end
			break
		}
	}
	if n := len(f.lines); n > 0 {
		f.lines[n-1].end = end
	}
	return end
}
