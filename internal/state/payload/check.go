package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Types of the values that a schema is applied to. The library's errors print values, even if the error is never shown, so these types
// print briefly.
type (
	object map[string]any
	list   []any
	text   string
)

func (o object) String() string { return fmt.Sprintf("an object of %d", len(o)) }
func (l list) String() string   { return fmt.Sprintf("a list of %d", len(l)) }
func (t text) String() string   { return fmt.Sprintf("%q", plaintext.Short(string(t), maxQuoted)) }

// maxChecked is the length, in characters, up to which a schema is applied to a string.
const maxChecked = 1 << 16

// instance converts a value to the types of this package. The library would treat a json.Number as a string.
func instance(value any) any {
	switch v := value.(type) {
	case map[string]any:
		o := object{}
		for key, below := range v {
			o[key] = instance(below)
		}
		return o
	case []any:
		l := make(list, 0, len(v))
		for _, item := range v {
			l = append(l, instance(item))
		}
		return l
	case string:
		first, _ := plaintext.First(v, maxChecked+1)
		return text(first)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		n, _ := v.Float64() // picker.number has accepted the number
		return n
	}
	return value
}

// resolve prepares a schema for use.
func resolve(schema any) (*jsonschema.Resolved, error) {
	data, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// explain returns why a value does not fit a schema, and where in the payload. The library only says where in the schema.
func explain(schema, value any, location string) error {
	for _, part := range parts(schema, value) {
		resolved, err := resolve(part.schema)
		if err != nil {
			continue // not reached: a part of a resolved schema can be resolved
		}
		for _, v := range part.values {
			if resolved.Validate(v.value) != nil {
				return explain(part.schema, v.value, location+v.place)
			}
		}
	}
	resolved, err := resolve(schema)
	if err == nil {
		err = resolved.Validate(value)
	}
	if err == nil { // not reached: the caller found that the value does not fit
		return &invalid{location, "does not fit the schema"}
	}
	s, _ := schema.(map[string]any)
	return &invalid{location, reason(s, value, err)}
}

// part is a subschema, with the values that it is applied to.
type part struct {
	schema any
	values []entry
}

type entry struct {
	place string // position relative to the value of the outer schema
	value any
}

// parts returns the schemas of a value's properties and items, in a fixed order.
func parts(schema, value any) (all []part) {
	s, _ := schema.(map[string]any)
	switch v := value.(type) {
	case object:
		properties, _ := s["properties"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(properties)) {
			if below, has := v[key]; has {
				all = append(all, part{properties[key], []entry{{escape(key), below}}})
			}
		}
	case list:
		var items []entry
		for i, item := range v {
			items = append(items, entry{"/" + strconv.Itoa(i), item})
		}
		first, _ := s["prefixItems"].([]any)
		n := min(len(first), len(items))
		for i, below := range first[:n] {
			all = append(all, part{below, items[i : i+1]})
		}
		if below, has := s["items"]; has {
			all = append(all, part{below, items[n:]})
		}
	}
	together, _ := s["allOf"].([]any)
	for _, below := range together {
		all = append(all, part{below, []entry{{"", value}}})
	}
	return all
}

// reason returns which keyword of a schema a value violates, without the value: errors are logged, and payloads must not be. The
// library's messages quote values or schemas.
func reason(schema map[string]any, value any, err error) string {
	err = innermost(err)
	keyword, _, _ := strings.Cut(err.Error(), ":")
	limit, here := schema[keyword]
	if schema != nil && !here && isWord(keyword) {
		return "does not fit " + keyword + " of a schema inside its own"
	}
	if keyword == "type" {
		return fmt.Sprintf("is %s, want %s", typeOf(value), strings.Trim(fmt.Sprint(limit), "[]"))
	}
	if said, known := misfits()[keyword]; known {
		return strings.ReplaceAll(said, "LIMIT", fmt.Sprint(limit))
	}
	return err.Error()
}

// misfits returns the reasons by keyword. LIMIT stands for the keyword's value.
func misfits() map[string]string {
	return map[string]string{
		"maxLength": "is longer than LIMIT characters", "minLength": "is shorter than LIMIT characters",
		"pattern": "does not match the pattern LIMIT", "enum": "is none of LIMIT", "const": "is not LIMIT",
		"multipleOf": "is not a multiple of LIMIT", "minimum": "is below LIMIT", "maximum": "is above LIMIT",
		"exclusiveMinimum": "is not above LIMIT", "exclusiveMaximum": "is not below LIMIT",
		"anyOf": "fits none of the schemas of anyOf", "oneOf": "does not fit exactly one of the schemas of oneOf",
		"not": "fits the schema of not, or is not allowed", "contains": "has no item that fits contains",
	}
}

// isWord reports whether s is one word, as the names of keywords are.
func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) })
}

func innermost(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// typeOf returns the type of a value as JSON Schema names it.
func typeOf(value any) string {
	switch value.(type) {
	case object:
		return "object"
	case list:
		return "array"
	case text:
		return "string"
	case bool:
		return "boolean"
	case nil:
		return "null"
	case int64:
		return "integer"
	}
	return "number"
}
