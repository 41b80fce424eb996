package main

import (
	"regexp"
	"strings"
	"unicode/utf16"
)

// units returns the length of a text as Telegram counts it.
func units(text string) (n int) {
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// addText adds a Markdown text to the parameters of a call, as a plain text with entities.
func addText(params map[string]any, text, entities, markdown string) {
	plain, list := format(markdown)
	if strings.TrimSpace(plain) == "" { // nothing but marks
		plain, list = markdown, nil
	}
	params[text] = plain
	if len(list) > 0 {
		params[entities] = list
	}
}

// span matches what a line has besides plain text: a backslash before a mark, code, bold, strikethrough, italic, a link.
var span = regexp.MustCompile("\\\\([\\\\`*_~\\[\\]])|`([^`]+)`|\\*\\*([^*]+(?:\\*[^*]+)*?)\\*\\*|~~([^~]+)~~|" +
	"\\*([^*\\s](?:[^*]*[^*\\s])?)\\*|\\b_([^_\\s](?:[^_]*[^_\\s])?)_\\b|\\[([^\\]]+)\\]\\((https?://[^)\\s]+)\\)")

// formatter builds a text with entities.
type formatter struct {
	text strings.Builder
	at   int // UTF-16 units of text
	list []entity
}

// format returns a Markdown text without its marks, and what they say as entities.
func format(markdown string) (plain string, list []entity) {
	var f formatter
	lines := strings.Split(markdown, "\n")
	for n := 0; n < len(lines); n++ {
		if n > 0 {
			f.add("\n")
		}
		fence, ok := strings.CutPrefix(strings.TrimLeft(lines[n], " "), "```")
		if !ok || strings.Contains(fence, "`") {
			f.line(lines[n])
			continue
		}
		end := n + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != "```" {
			end++
		}
		f.mark(entity{Type: "pre", Language: strings.TrimSpace(fence)}, func() { f.add(strings.Join(lines[n+1:min(end, len(lines))], "\n")) })
		n = end
	}
	return f.text.String(), f.list
}

func (f *formatter) add(text string) {
	f.text.WriteString(text)
	f.at += units(text)
}

// mark adds an entity for what is added meanwhile.
func (f *formatter) mark(e entity, add func()) {
	index := len(f.list)
	f.list = append(f.list, e)
	f.list[index].Offset = f.at
	add()
	if f.list[index].Length = f.at - f.list[index].Offset; f.list[index].Length == 0 {
		f.list = append(f.list[:index], f.list[index+1:]...)
	}
}

// line adds a line outside of blocks of code.
func (f *formatter) line(text string) {
	title := strings.TrimLeft(text, "#")
	if depth := len(text) - len(title); depth > 0 && depth <= 6 && strings.HasPrefix(title, " ") {
		f.mark(entity{Type: "bold"}, func() { f.spans(strings.TrimSpace(title)) })
		return
	}
	if said, ok := strings.CutPrefix(text, "> "); ok {
		f.mark(entity{Type: "blockquote"}, func() { f.spans(said) })
		return
	}
	f.spans(text)
}

// spans adds the text of a line.
func (f *formatter) spans(text string) {
	for {
		m := span.FindStringSubmatchIndex(text)
		if m == nil {
			f.add(text)
			return
		}
		f.add(text[:m[0]])
		part := func(group int) string { return text[m[2*group]:m[2*group+1]] }
		has := func(group int) bool { return m[2*group] >= 0 }
		switch {
		case has(1):
			f.add(part(1))
		case has(2):
			f.mark(entity{Type: "code"}, func() { f.add(part(2)) })
		case has(3):
			f.mark(entity{Type: "bold"}, func() { f.spans(part(3)) })
		case has(4):
			f.mark(entity{Type: "strikethrough"}, func() { f.spans(part(4)) })
		case has(5):
			f.mark(entity{Type: "italic"}, func() { f.spans(part(5)) })
		case has(6):
			f.mark(entity{Type: "italic"}, func() { f.spans(part(6)) })
		default:
			f.mark(entity{Type: "text_link", URL: part(8)}, func() { f.spans(part(7)) })
		}
		text = text[m[1]:]
	}
}
