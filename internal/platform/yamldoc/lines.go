package yamldoc

import (
	"bytes"
	"cmp"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
)

// find returns the index of key's name in a mapping's content, in either spelling; -1 if there is none, or if m is not a mapping.
func find(m *yaml.Node, key string) int {
	for i := 0; m.Kind == yaml.MappingNode && i < len(m.Content); i += 2 {
		if Kebab(m.Content[i].Value) == Kebab(key) {
			return i
		}
	}
	return -1
}

// lines splits the text after each newline. The last line may lack one. A byte order mark is not part of the first line.
func (d *Doc) lines() []string {
	lines := strings.SplitAfter(strings.TrimPrefix(string(d.text), bom), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// span returns the first and last line, from 1, of the entry at index i, which has this path. The last line is the first one at which the
// text so far has the whole value. Blank lines at the end of a text belong to the next entry.
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

// at returns the value at a path; an empty node if there is none.
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

// lastContent returns the last line with content; 0 if there is none. Blank lines, and comments with an indentation of at most depth, do
// not count, because they belong to the next entry.
func lastContent(lines []string, depth int) int {
	for i := len(lines) - 1; i >= 0; i-- {
		text := strings.TrimSpace(lines[i])
		if text != "" && (text[0] != '#' || leading(lines[i]) > depth) {
			return i + 1
		}
	}
	return 0
}

// from returns the rest of a line from a column, which counts characters from 1.
func from(line string, column int) string { return string([]rune(line)[column-1:]) }

// leading counts the spaces at the beginning of a line.
func leading(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// places returns the lines after which a new entry may be inserted, best first.
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

// splice replaces lines first to last by text, with the file's line ends. Lines count from 1; if last < first, text is inserted before
// first.
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

// comment returns the comment after an entry on its first line.
func (d *Doc) comment(name, value *yaml.Node) string {
	rest := strings.TrimPrefix(from(d.lines()[name.Line-1], name.Column), name.Value)
	if rest = strings.TrimSpace(strings.TrimPrefix(rest, ":")); strings.HasPrefix(rest, "#") {
		return rest // the library attaches it to the next entry
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
