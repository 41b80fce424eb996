// Package payload selects the data of a webhook's event that the agent gets. A JSON Schema names the values; everything else is dropped.
// The body comes from outside: it is checked, limited and shortened before any part of it is passed on. An Answer is the schema for the
// answer of an agent.
//
// Schemas are those of JSON Schema 2020-12 or draft 7. They are trees: a reference is replaced by its target, and a recursive one is
// rejected. So the time of a check is at most the size of the schema times that of the selected values.
package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// Datum is one selected value.
type Datum struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// invalid is the error of a payload that is not JSON or does not fit the schema. It may quote a key of the payload, but no value.
type invalid struct {
	Location string // a JSON pointer into the payload, "byte N", or "" for the payload as a whole
	Reason   string
}

func (e *invalid) Error() string {
	location, reason := plaintext.Short(plaintext.Line(e.Location), maxQuoted), plaintext.Short(plaintext.Line(e.Reason), 2*maxQuoted)
	if location == "" {
		return reason
	}
	return location + ": " + reason
}

// Limits of the data that is passed on.
const (
	maxText   = 500       // characters of a string whose schema has no maxLength
	maxValues = 1 << 16   // number of values, counting each item of a list and each property
	maxDepth  = 100       // nesting depth of values
	maxDigits = 100       // characters of a number
	maxData   = 256 << 10 // bytes of all selected values, the same as `ollim fire JOB -` accepts
	maxQuoted = 100       // characters of a value that an error quotes
)

// Fields is the schema for the payload of a webhook. It is immutable.
type Fields struct {
	fields []field              // fields in the order of the file
	closed bool                 // properties without a field are an error
	list   bool                 // a field is an item of a payload that is a list, or the whole payload
	rest   map[string]any       // the part of the schema that concerns several values together
	whole  *jsonschema.Resolved // rest, ready for use
	paths  branch
	source yamldoc.Value
}

// field is one property of the schema.
type field struct {
	name     string
	pointer  string // pointer into the payload
	required bool
	schema   any // map[string]any or bool, without references
	resolved *jsonschema.Resolved
}

// Names returns the names of the values in the order of the file.
func (f *Fields) Names() (names []string) {
	for _, p := range f.fields {
		names = append(names, p.name)
	}
	return names
}

// Lines describes the selected values, each on one line, with references replaced.
func (f *Fields) Lines() (lines []string) {
	asJSON := func(schema any) string {
		text, _ := json.Marshal(schema) // the schema was parsed from text, so it can be encoded
		return string(text)
	}
	for _, p := range f.fields {
		line := fmt.Sprintf("field %q: %s %s", p.name, p.pointer, asJSON(p.schema))
		if p.required {
			line += " required"
		}
		lines = append(lines, line)
	}
	if len(f.rest) > 0 {
		lines = append(lines, "together: "+asJSON(f.rest))
	}
	if f.closed {
		lines = append(lines, "others: error")
	}
	return lines
}

// Source returns the schema as written.
func (f *Fields) Source() yamldoc.Value { return f.source }

// Select returns the values that the schema names, in its order. The error is an *invalid.
func (f *Fields) Select(payload []byte) ([]Datum, error) {
	found, err := pick(f, payload)
	if err != nil {
		return nil, err
	}
	all := object{}
	for _, p := range f.fields {
		value, has := found[p.name]
		if !has {
			if p.required {
				return nil, &invalid{p.pointer, "is missing"}
			}
			continue
		}
		checked := instance(value)
		if p.resolved.Validate(checked) != nil {
			return nil, explain(p.schema, checked, p.pointer)
		}
		all[p.name] = checked
	}
	if f.whole.Validate(all) != nil {
		return nil, explain(f.rest, all, "")
	}
	return f.data(found)
}

// data returns the values in the form in which they are passed on.
func (f *Fields) data(found map[string]any) (data []Datum, err error) {
	size := 0
	for _, p := range f.fields {
		value, has := found[p.name]
		if !has {
			continue
		}
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(cut(views(p.schema), value)); err != nil {
			return nil, &invalid{p.pointer, err.Error()}
		}
		if size += text.Len(); size > maxData {
			return nil, &invalid{p.pointer, fmt.Sprintf("the selected values have more than %d bytes", maxData)}
		}
		data = append(data, Datum{p.name, bytes.TrimSuffix(text.Bytes(), []byte("\n"))})
	}
	return data, nil
}

// escape returns a key as a segment of a JSON pointer.
func escape(key string) string { return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
