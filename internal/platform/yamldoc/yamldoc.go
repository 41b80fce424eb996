// Package yamldoc reads YAML written by people, strictly, and edits it in place. Every error names file, line and key; an edit
// replaces the lines of one entry and keeps every other byte, comment and blank line. A Page is a Markdown file that begins
// with such YAML between two --- lines.
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Fault is one error at one place of a file.
type Fault struct {
	File   string
	Line   int    // from 1; 0 if the fault is about the whole file
	Key    string // "" if the fault is not about one key
	Reason string // lower case, no full stop
}

// Error returns "file:line: key: reason".
func (f *Fault) Error() string {
	s := f.File
	if f.Line > 0 {
		s += ":" + strconv.Itoa(f.Line)
	}
	if f.Key != "" {
		s += ": " + f.Key
	}
	return s + ": " + f.Reason
}

// Faults is every fault of one file, in the order of lines. It is never empty.
type Faults []*Fault

// Error returns the first fault, and how many follow.
func (fs Faults) Error() string {
	if len(fs) == 1 {
		return fs[0].Error()
	}
	return fmt.Sprintf("%s (and %d more)", fs[0], len(fs)-1)
}

// Doc is a YAML mapping together with its text. It is immutable; Set and Delete return a changed copy.
type Doc struct {
	file  string
	first int    // line number in the file of the first line of text
	text  []byte // as written
	root  *yaml.Node
}

// Parse parses text, which begins in file at line first (1 if the whole file is YAML). Empty text is an empty mapping. The error is a
// Faults.
func Parse(file string, text []byte, first int) (*Doc, error) {
	d := &Doc{file: file, first: first, text: text}
	if i, reason := oddity(text); i >= 0 {
		return nil, Faults{d.fault(bytes.Count(text[:i], []byte("\n"))+1, "", reason)}
	}
	root, err := read(text)
	if err != nil {
		return nil, Faults{d.syntax(err)}
	}
	if root.Kind != yaml.MappingNode {
		return nil, Faults{d.fault(root.Line, "", "want `key: value` lines")}
	}
	if n := unsupported(root); n != nil {
		return nil, Faults{d.fault(n.Line, "", "anchors, aliases, merge keys and tags are not supported")}
	}
	d.root = root
	return d, nil
}

// read parses the only document in text. Empty text gives an empty mapping.
func read(text []byte) (*yaml.Node, error) {
	empty := &yaml.Node{Kind: yaml.MappingNode}
	decoder := yaml.NewDecoder(bytes.NewReader(shortComments(text)))
	var doc, second yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return empty, nil
	} else if err != nil {
		return nil, err
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, errors.New("more than one YAML document")
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if root := doc.Content[0]; !nothing(root) {
		return root, nil
	}
	return empty, nil
}

// shortComments removes the text of comment lines after the #. With whole comments the library takes three times as long for the settings
// that init writes. If the text has a quote or a block scalar, it changes nothing, because such a line may be part of a value.
func shortComments(text []byte) []byte {
	short := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		comment := bytes.TrimLeft(line, " ")
		if bytes.HasPrefix(comment, []byte("#")) {
			short = append(append(short, line[:len(line)-len(comment)+1]...), '\n')
			continue
		}
		if bytes.ContainsAny(line, `"'|>`) {
			return text
		}
		short = append(short, line...)
	}
	return short
}

// nothing reports whether a node is absent or null.
func nothing(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Anchor == ""
}

func (d *Doc) fault(line int, key, reason string) *Fault {
	if line > 0 {
		line += d.first - 1
	}
	return &Fault{d.file, line, key, reason}
}

// unsupported returns the first node whose meaning would differ from its text; nil if there is none.
func unsupported(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Tag == "!!merge" || n.Style&yaml.TaggedStyle != 0 {
		return n
	}
	for _, child := range n.Content {
		if bad := unsupported(child); bad != nil {
			return bad
		}
	}
	return nil
}

// Field says how the value of one key is read. Read returns an error that is only a reason; the caller adds file, line and key.
type Field struct {
	Key  string // kebab-case; snake_case is accepted too
	Read func(Value) error
}

// Root returns the whole document as a value.
func (d *Doc) Root() Value { return Value{doc: d, node: d.root} }

// Decode decodes every entry by its field. Unknown keys, duplicates, two spellings of one key and rejected values are faults. It finds
// all faults, not only the first. The error is a Faults.
func (d *Doc) Decode(fields []Field) error { return d.decode(d.root, "", fields) }

func (d *Doc) decode(m *yaml.Node, prefix string, fields []Field) error {
	var faults Faults
	seen := map[string]*yaml.Node{}
	for name, value := range entries(m) {
		key := Kebab(name.Value)
		at := slices.IndexFunc(fields, func(f Field) bool { return f.Key == key })
		switch {
		case at < 0:
			faults = append(faults, d.fault(name.Line, prefix+name.Value, unknown(key, fields)))
		case seen[key] != nil:
			twice := fmt.Sprintf("given twice (as %s on line %d)", seen[key].Value, d.lineOf(seen[key]))
			faults = append(faults, d.fault(name.Line, prefix+name.Value, twice))
		default:
			faults = append(faults, d.read(fields[at], prefix, value)...)
		}
		seen[key] = name
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// entries yields the names and values of a mapping.
func entries(m *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(name, value *yaml.Node) bool) {
		for pair := range slices.Chunk(m.Content, 2) {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}
}

func (d *Doc) read(f Field, prefix string, value *yaml.Node) Faults {
	err := f.Read(Value{d, value, prefix + f.Key})
	if err == nil {
		return nil
	}
	if nested := (Faults)(nil); errors.As(err, &nested) {
		return nested
	}
	if deeper := (*misfit)(nil); errors.As(err, &deeper) {
		return Faults{d.fault(deeper.line, deeper.key, err.Error())}
	}
	return Faults{d.fault(value.Line, prefix+f.Key, err.Error())}
}

func unknown(key string, fields []Field) string {
	known := make([]string, 0, len(fields))
	for _, f := range fields {
		known = append(known, f.Key)
	}
	similar := plaintext.Similar(key, known)
	return "unknown key" + plaintext.Suggestion(similar[:min(1, len(similar))]...)
}

// Kebab returns a key in kebab-case, the spelling that is written.
func Kebab(key string) string { return strings.ReplaceAll(key, "_", "-") }

// Fault returns a fault about key at the line of that key; at line 0 if the document has no such key. Callers use it for rules that
// concern several keys.
func (d *Doc) Fault(key, reason string) *Fault { return &Fault{d.file, d.Line(key), key, reason} }

// Has reports whether the document has an entry for key, in either spelling.
func (d *Doc) Has(key string) bool { return find(d.root, key) >= 0 }

// Text returns the document as written.
func (d *Doc) Text() []byte { return d.text }

// Line returns the line of the file, from 1, with the entry at path; 0 if there is none.
func (d *Doc) Line(path ...string) int {
	m := at(d.root, path[:len(path)-1])
	if i := find(m, path[len(path)-1]); i >= 0 {
		return d.lineOf(m.Content[i])
	}
	return 0
}

// lineOf returns the line of the file, from 1, at which a node begins.
func (d *Doc) lineOf(n *yaml.Node) int { return n.Line + d.first - 1 }

// Values returns the whole document as nested maps with kebab-case keys. Scalars are text as written; nulls are omitted.
func (d *Doc) Values() map[string]any { return values(d.root) }

func values(m *yaml.Node) map[string]any {
	out := map[string]any{}
	for name, value := range entries(m) {
		key := Kebab(name.Value)
		switch {
		case value.Kind == yaml.MappingNode:
			out[key] = values(value)
		case value.Kind == yaml.SequenceNode:
			items := make([]string, 0, len(value.Content))
			for _, item := range value.Content {
				items = append(items, item.Value)
			}
			out[key] = items
		case value.Tag != "!!null":
			out[key] = value.Value
		}
	}
	return out
}
