package yamldoc

import (
	"fmt"
	"math"
	"strconv"

	"gopkg.in/yaml.v3"
)

// Value is the value of one entry, not yet converted to a type. Its methods return errors that are only reasons, see Field.
type Value struct {
	doc  *Doc
	node *yaml.Node
	path string
}

// misfit is the reason why a value is rejected, with its position, which may be deeper than that of the Field.
type misfit struct {
	line   int // line in the document
	key    string
	reason string
}

func (e *misfit) Error() string { return e.reason }

// Wrong returns an error with a reason, the value's own line and its key. It is for values that are deeper than a Field.
func (v Value) Wrong(reason string) error { return &misfit{v.node.Line, v.path, reason} }

// Text returns a scalar as it is written in the file: an unquoted 00123456 keeps its zeros, and an unquoted date is not reformatted.
func (v Value) Text() (string, error) {
	if v.node.Kind != yaml.ScalarNode || v.node.Tag == "!!null" {
		return "", v.Wrong("want text, " + v.got())
	}
	return v.node.Value, nil
}

// Bool returns a value that is true or false.
func (v Value) Bool() (bool, error) {
	var b bool
	if v.node.Tag != "!!bool" || v.node.Decode(&b) != nil {
		return false, v.Wrong("want true or false, " + v.got())
	}
	return b, nil
}

// Int returns a whole number.
func (v Value) Int() (int, error) {
	n, err := strconv.Atoi(v.node.Value)
	if v.node.Tag != "!!int" || err != nil {
		return 0, v.Wrong("want a whole number, " + v.got())
	}
	return n, nil
}

// Number returns an integer or a decimal.
func (v Value) Number() (float64, error) {
	n, err := strconv.ParseFloat(v.node.Value, 64)
	if v.node.Tag != "!!int" && v.node.Tag != "!!float" || err != nil {
		return 0, v.Wrong("want a number, " + v.got())
	}
	return n, nil
}

// Texts returns a list of scalars in the form of Text, each accepted by check. It is never nil.
func (v Value) Texts(check ...func(string) error) ([]string, error) {
	if v.node.Kind != yaml.SequenceNode {
		return nil, v.Wrong("want a list like [a, b], " + v.got())
	}
	texts := make([]string, 0, len(v.node.Content))
	for i, node := range v.node.Content {
		item := Value{v.doc, node, v.path}
		text, err := item.Text()
		for _, c := range check {
			if err == nil {
				err = c(text)
			}
		}
		if err != nil {
			return nil, item.Wrong(fmt.Sprintf("item %d: %s", i+1, err))
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// Items returns a list of any values; never nil.
func (v Value) Items() ([]Value, error) {
	if v.node.Kind != yaml.SequenceNode {
		return nil, v.Wrong("want a list, " + v.got())
	}
	items := make([]Value, 0, len(v.node.Content))
	for i, item := range v.node.Content {
		items = append(items, Value{v.doc, item, fmt.Sprintf("%s[%d]", v.path, i)})
	}
	return items, nil
}

// Entry is one entry of a mapping.
type Entry struct {
	Key   string
	Value Value
}

// Entries returns the entries of a mapping, in the order of the file.
func (v Value) Entries() ([]Entry, error) {
	if v.node.Kind != yaml.MappingNode {
		return nil, v.Wrong("want a section of `key: value` lines, " + v.got())
	}
	list := make([]Entry, 0, len(v.node.Content)/2)
	seen := map[string]bool{}
	for name, value := range entries(v.node) {
		key := Value{v.doc, name, v.path + "." + name.Value}
		if name.Kind != yaml.ScalarNode {
			return nil, key.Wrong("a key must be text")
		}
		if seen[name.Value] {
			return nil, key.Wrong("given twice")
		}
		seen[name.Value] = true
		list = append(list, Entry{name.Value, Value{v.doc, value, key.path}})
	}
	return list, nil
}

// Get returns the value of a key of a mapping, and reports whether it exists.
func (v Value) Get(key string) (Value, bool) {
	if v.node.Kind == yaml.MappingNode {
		for name, value := range entries(v.node) {
			if name.Value == key {
				return Value{v.doc, value, v.path + "." + key}, true
			}
		}
	}
	return Value{}, false
}

// Section returns a nested mapping as data like that of encoding/json, for mappings whose keys this program does not define. Dates stay
// text.
func (v Value) Section() (map[string]any, error) {
	list, err := v.Entries()
	m := make(map[string]any, len(list))
	for _, e := range list {
		if err == nil {
			m[e.Key], err = e.Value.Data()
		}
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Data returns the value in the types of encoding/json: map[string]any, []any, string, bool, int64, float64 or nil.
func (v Value) Data() (any, error) {
	switch {
	case v.node.Kind == yaml.SequenceNode:
		items, err := v.Items()
		list := make([]any, len(items))
		for i, item := range items {
			if list[i], err = item.Data(); err != nil {
				return nil, err
			}
		}
		return list, err
	case v.node.Kind == yaml.MappingNode:
		return v.Section()
	case v.node.Tag == "!!null":
		return nil, nil
	case v.node.Tag == "!!bool":
		return v.Bool()
	case v.node.Tag == "!!int":
		if n, err := strconv.ParseInt(v.node.Value, 10, 64); err == nil {
			return n, nil
		}
	case v.node.Tag == "!!float":
		if n, err := strconv.ParseFloat(v.node.Value, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
			return n, nil
		}
	default:
		return v.node.Value, nil
	}
	return nil, v.Wrong("want a number that JSON can have, " + v.got())
}

// Decode decodes a nested mapping by fields. The error is a Faults.
func (v Value) Decode(fields []Field) error {
	if v.node.Kind != yaml.MappingNode {
		if v.node.Tag == "!!null" {
			return nil // a section whose entries are all commented out
		}
		return v.Wrong("want a section of `key: value` lines, " + v.got())
	}
	return v.doc.decode(v.node, v.path+".", fields)
}

func (v Value) got() string {
	switch {
	case v.node.Kind == yaml.SequenceNode:
		return "not a list"
	case v.node.Kind == yaml.MappingNode:
		return "not a section"
	case v.node.Tag == "!!null":
		return "not an empty value"
	}
	return "not " + strconv.Quote(v.node.Value)
}
