package yamldoc

import (
	"bytes"
	"cmp"
	"math"
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

// span is the first and last line, from 1, of the entry at index i.
func (d *Doc) span(s section, i int) (first, last int) {
	end := s.end
	if i+2 < len(s.m.Content) {
		end = s.m.Content[i+2].Line - 1
	}
	first = s.m.Content[i].Line
	return first, max(first, lastLine(s.m.Content[i+1], d.lines()[:end], len(s.indent)))
}

// lastLine is the line, from 1, with which a value ends. lines go up to the next entry, and indent is that of the entry.
func lastLine(n *yaml.Node, lines []string, indent int) int {
	switch {
	case n.Tag == "!!null" && n.Value == "":
		return min(n.Line, len(lines)) // what is indented below are comments
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return lastOfBlock(n, lines, indent)
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return lastOfQuote(n, lines)
	case n.Style&yaml.FlowStyle == 0 && len(n.Content) > 0:
		return lastLine(n.Content[len(n.Content)-1], lines, n.Column-1)
	}
	return lastContent(lines, math.MaxInt)
}

// lastContent is the last line that says something: blank lines, and comments indented by no more than depth, belong to
// what follows. 0 if there is none.
func lastContent(lines []string, depth int) int {
	for i := len(lines) - 1; i >= 0; i-- {
		text := strings.TrimSpace(lines[i])
		if text != "" && (text[0] != '#' || leading(lines[i]) > depth) {
			return i + 1
		}
	}
	return 0
}

// lastOfBlock is the last line of a text that | or > begins: its lines are indented by as much as the first of them, and
// whatever looks like a comment there is text.
func lastOfBlock(n *yaml.Node, lines []string, indent int) int {
	least := 0
	if mark, _, _ := strings.Cut(from(lines[n.Line-1], n.Column), " "); strings.ContainsAny(mark, "123456789") {
		least = indent + 1
	}
	last := n.Line
	for i, line := range lines[n.Line:] {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if least == 0 {
			least = max(leading(line), indent+1)
		}
		if leading(line) < least {
			break
		}
		last = n.Line + i + 1
	}
	return last
}

// lastOfQuote is the line of the quote that ends a quoted text.
func lastOfQuote(n *yaml.Node, lines []string) int {
	text := from(lines[n.Line-1], n.Column)
	quote, text := text[0], text[1:]
	for line := n.Line; ; line++ {
		for i := 0; i < len(text); i++ {
			switch {
			case text[i] == '\\' && quote == '"', quote == '\'' && strings.HasPrefix(text[i:], "''"):
				i++
			case text[i] == quote:
				return line
			}
		}
		if line >= len(lines) {
			return len(lines)
		}
		text = lines[line]
	}
}

// from is what stands in a line from a column, counted in characters from 1.
func from(line string, column int) string { return string([]rune(line)[column-1:]) }

// leading counts the spaces at the beginning of a line.
func leading(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// places are the lines behind which a new entry may go, best first.
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

// comment is what stands behind an entry on its first line.
func (d *Doc) comment(name, value *yaml.Node) string {
	rest := strings.TrimPrefix(from(d.lines()[name.Line-1], name.Column), name.Value)
	if rest = strings.TrimSpace(strings.TrimPrefix(rest, ":")); strings.HasPrefix(rest, "#") {
		return rest // the library gives it to what follows
	}
	line, _, _ := strings.Cut(cmp.Or(value.LineComment, name.LineComment), "\n")
	return line
}

// annotate puts a comment behind the first line of an entry.
func annotate(entry []byte, comment string) []byte {
	if comment == "" {
		return entry
	}
	return bytes.Replace(entry, []byte("\n"), []byte(" "+comment+"\n"), 1)
}
