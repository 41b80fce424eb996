package yamldoc

import (
	"bytes"
	"cmp"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
)

// find is the index of key's name in a mapping's content, in either spelling; -1 if there is none, or no mapping.
func find(m *yaml.Node, key string) int {
	for i := 0; m.Kind == yaml.MappingNode && i < len(m.Content); i += 2 {
		if Kebab(m.Content[i].Value) == Kebab(key) {
			return i
		}
	}
	return -1
}

// lines splits the text after each newline; the last one may lack it. A byte order mark belongs to no line.
func (d *Doc) lines() []string {
	lines := strings.SplitAfter(strings.TrimPrefix(string(d.text), bom), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// span is the first and last line, from 1, of the entry at index i, whose path is given: its last line is the first one up to
// which the text has the whole value; blank lines at the end of a text belong to what follows.
func (d *Doc) span(s section, i int, path []string) (first, last int) {
	first, last = s.m.Content[i].Line, s.end
	if i+2 < len(s.m.Content) {
		last = s.m.Content[i+2].Line - 1
	}
	lines := d.lines()
	return first, first + sort.Search(last-first, func(more int) bool {
		root, err := read([]byte(strings.Join(lines[:first+more], "")))
		return err == nil && same(at(root, path), s.m.Content[i+1], "\n")
	})
}

// at is the value at a path; an empty node if there is none.
func at(m *yaml.Node, path []string) *yaml.Node {
	for _, key := range path {
		i := find(m, key)
		if i < 0 {
			return &yaml.Node{}
		}
		m = m.Content[i+1]
	}
	return m
}

// lastContent is the last line with content: blank lines, and comments indented by no more than depth, belong to what follows.
// 0 if there is none.
func lastContent(lines []string, depth int) int {
	for i := len(lines) - 1; i >= 0; i-- {
		text := strings.TrimSpace(lines[i])
		if text != "" && (text[0] != '#' || leading(lines[i]) > depth) {
			return i + 1
		}
	}
	return 0
}

// from is what stands in a line from a column, counted in characters from 1.
func from(line string, column int) string { return string([]rune(line)[column-1:]) }

// leading counts the spaces at the beginning of a line.
func leading(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// places are the lines after which a new entry may go, best first.
func (d *Doc) places(s section, key string) (behind []int) {
	lines := d.lines()[:s.end]
	for i := len(lines) - 1; i >= s.start-1; i-- {
		if strings.HasPrefix(lines[i], s.indent+"# "+key+":") {
			behind = append(behind, i+1)
		}
	}
	if len(s.m.Content) > 0 {
		behind = append(behind, lastContent(lines, len(s.indent)))
	}
	return append(behind, s.end)
}

// splice replaces lines first to last (from 1; last < first inserts before first) by text, in the file's line ends.
func (d *Doc) splice(first, last int, text []byte) []byte {
	lines := d.lines()
	before := strings.Join(lines[:first-1], "")
	after := strings.Join(lines[last:], "")
	if before != "" && !strings.HasSuffix(before, "\n") {
		text = append([]byte("\n"), text...)
	}
	if bytes.Contains(d.text, []byte("\r\n")) {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	if bytes.HasPrefix(d.text, []byte(bom)) {
		before = bom + before
	}
	return []byte(before + string(text) + after)
}

// shift indents every line of an entry.
func shift(entry []byte, indent string) []byte {
	var out []byte
	for line := range bytes.Lines(entry) {
		out = append(append(out, indent...), line...)
	}
	return out
}

// comment is the comment after an entry, on its first line.
func (d *Doc) comment(name, value *yaml.Node) string {
	rest := strings.TrimPrefix(from(d.lines()[name.Line-1], name.Column), name.Value)
	if rest = strings.TrimSpace(strings.TrimPrefix(rest, ":")); strings.HasPrefix(rest, "#") {
		return rest // the library gives it to what follows
	}
	line, _, _ := strings.Cut(cmp.Or(value.LineComment, name.LineComment), "\n")
	return line
}

// annotate puts a comment after the first line of an entry.
func annotate(entry []byte, comment string) []byte {
	if comment == "" {
		return entry
	}
	return bytes.Replace(entry, []byte("\n"), []byte(" "+comment+"\n"), 1)
}
