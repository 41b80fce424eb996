package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Pair is an entry to be written. Value is a string, bool, int, float64, []string, a Value that was read, a []Pair (a section), or a Pair
// (a section with one entry).
type Pair struct {
	Key   string
	Value any
}

// Encode returns the text of a new mapping, with each entry on a line, in the order of pairs.
func Encode(pairs []Pair) ([]byte, error) {
	var out []byte
	for _, p := range pairs {
		entry, err := encodeEntry(p.Key, p.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, entry...)
	}
	return out, nil
}

func encodeEntry(key string, value any) ([]byte, error) {
	node, err := toNode(Pair{key, value})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err = errors.Join(encoder.Encode(node), encoder.Close())
	return out.Bytes(), err
}

func toNode(value any) (*yaml.Node, error) {
	switch v := value.(type) {
	case string:
		return textNode(v)
	case Value:
		return block(v.node)
	case []Pair:
		section := &yaml.Node{Kind: yaml.MappingNode}
		for _, p := range v {
			entry, err := toNode(p)
			if err != nil {
				return nil, err
			}
			section.Content = append(section.Content, entry.Content...)
		}
		return section, nil
	case []string:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, text := range v {
			item, err := textNode(text)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, item)
		}
		if len(v) == 0 {
			list.Style = yaml.FlowStyle
		}
		return list, nil
	case Pair:
		inner, err := toNode(v.Value)
		if err != nil {
			return nil, err
		}
		return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: v.Key}, inner}}, nil
	}
	var n yaml.Node
	err := n.Encode(value)
	return &n, err
}

// block returns a node in the style of this package: mappings on several lines, and as few quotes as possible. It drops comments.
func block(n *yaml.Node) (*yaml.Node, error) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		return textNode(n.Value)
	}
	out := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value}
	if len(n.Content) == 0 || n.Kind == yaml.SequenceNode {
		out.Style = n.Style
	}
	for _, child := range n.Content {
		below, err := block(child)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, below)
	}
	return out, nil
}

// textNode quotes text that is not printable text on one line, because the library's block styles lose leading spaces. It also quotes the
// merge key, which the library does not quote. The library itself quotes words that only an older YAML would not read as text.
func textNode(text string) (*yaml.Node, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("not valid UTF-8")
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle}
	if text == "<<" || strings.ContainsFunc(text, func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff
	}) {
		return n, nil
	}
	err := n.Encode(text)
	return n, err
}

// Set sets the entry at path (the keys of nested mappings, outermost first) to a value. It replaces the lines of an existing entry, and
// keeps the spelling of its key and a comment after it. It adds a new entry below a comment that shows it (`# key: …`), or at the end of
// its mapping. It returns an error if the edit would change anything else.
func (d *Doc) Set(path []string, value any) (*Doc, error) {
	s, rest := d.descend(path)
	key := rest[0]
	for i := len(rest) - 1; i > 0; i-- {
		value = Pair{rest[i], value}
	}
	if s.m.Style&yaml.FlowStyle != 0 {
		return nil, byHand(path, "written in one line with braces")
	}
	i := find(s.m, key)
	if i >= 0 && len(rest) > 1 && !nothing(s.m.Content[i+1]) {
		return nil, byHand(path, key+" is not a section")
	}
	if i >= 0 {
		key = s.m.Content[i].Value
	}
	entry, err := encodeEntry(key, value)
	if err != nil {
		return nil, err
	}
	entry = shift(entry, s.indent)
	if i >= 0 {
		entry = annotate(entry, d.comment(s.m.Content[i], s.m.Content[i+1]))
		first, last := d.span(s, i, path[:len(path)-len(rest)+1])
		return d.checked(path, d.splice(first, last, entry))
	}
	var texts [][]byte
	for _, at := range d.places(s, key) {
		texts = append(texts, d.splice(at+1, at, entry))
	}
	return d.checked(path, texts...)
}

// Delete removes the entry at path, if it exists. Comments are kept.
func (d *Doc) Delete(path []string) (*Doc, error) {
	s, rest := d.descend(path)
	i := find(s.m, rest[0])
	if i < 0 || len(rest) > 1 {
		return d, nil
	}
	if s.m.Style&yaml.FlowStyle != 0 {
		return nil, byHand(path, "written in one line with braces")
	}
	first, last := d.span(s, i, path)
	return d.checked(path, d.splice(first, last, nil))
}

// section is a mapping and the range of lines for its entries.
type section struct {
	m          *yaml.Node
	start, end int // first and last line, from 1
	indent     string
}

// descend returns the innermost existing section on the way to path, and the rest of path from there: the key of an entry and, if that is
// not a section, the keys inside it.
func (d *Doc) descend(path []string) (section, []string) {
	s := section{m: d.root, start: 1, end: len(d.lines())}
	for {
		if len(s.m.Content) > 0 {
			s.indent = strings.Repeat(" ", s.m.Column-1)
		}
		i := find(s.m, path[0])
		if len(path) == 1 || i < 0 || s.m.Content[i+1].Kind != yaml.MappingNode {
			return s, path
		}
		if i+2 < len(s.m.Content) {
			s.end = s.m.Content[i+2].Line - 1
		}
		s.start, s.m, path = s.m.Content[i].Line+1, s.m.Content[i+1], path[1:]
	}
}

// checked parses the candidates for the new text. It returns the first that differs from d only in the entry at path.
func (d *Doc) checked(path []string, texts ...[]byte) (*Doc, error) {
	for _, text := range texts {
		edited, err := Parse(d.file, text, d.first)
		if err == nil && sameBut(d.root, edited.root, path) {
			return edited, nil
		}
	}
	return nil, byHand(path, "cannot be changed without affecting other lines")
}

func byHand(path []string, why string) error {
	return fmt.Errorf("%s: %s: edit it by hand", strings.Join(path, "."), why)
}

// sameBut reports whether two mappings are equal except for the entry at path.
func sameBut(a, b *yaml.Node, path []string) bool {
	restA, innerA := apart(a, path[0])
	restB, innerB := apart(b, path[0])
	return same(restA, restB, "") && (len(path) == 1 || sameBut(innerA, innerB, path[1:]))
}

// apart splits a mapping into the entry of a key, if that is a section, and all other entries.
func apart(m *yaml.Node, key string) (rest, inner *yaml.Node) {
	rest, inner = &yaml.Node{}, &yaml.Node{}
	for name, value := range entries(m) {
		switch {
		case Kebab(name.Value) != Kebab(key):
			rest.Content = append(rest.Content, name, value)
		case value.Kind == yaml.MappingNode:
			inner = value
		}
	}
	return rest, inner
}

// same reports whether two values are equal. It ignores the characters ends at the end of texts.
func same(a, b *yaml.Node, ends string) bool {
	return a.Kind == b.Kind && a.Tag == b.Tag && strings.TrimRight(a.Value, ends) == strings.TrimRight(b.Value, ends) &&
		slices.EqualFunc(a.Content, b.Content, func(a, b *yaml.Node) bool { return same(a, b, ends) })
}
