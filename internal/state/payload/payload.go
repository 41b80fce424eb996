// Package payload selects the data of a webhook's event that the agent gets. A JSON Schema names the values; what it does not name is
// dropped. The body comes from outside: it is checked, bounded and cut before any of it is passed on. An Answer is the schema of what
// an agent answers.
//
// Schemas are those of JSON Schema 2020-12 or draft 7. They are trees: a reference is replaced by what it refers to, and a
// recursive one is refused, so the time of a check is at most the size of the schema times that of the selected values.
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

// invalid is the error of a payload that is not JSON or does not fit the schema. It may name a key of the payload, and no value.
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

// Limits of what is passed on.
const (
	maxText   = 500       // characters of a string without a maxLength
	maxValues = 1 << 16   // values, each item of a list and each property counted
	maxDepth  = 100       // values inside each other
	maxDigits = 100       // characters of a number
	maxData   = 256 << 10 // bytes of all selected values, as much as `ollim fire JOB -` takes
	maxQuoted = 100       // characters of a value in an error
)

// Fields is the schema of the values of a webhook. It is immutable.
type Fields struct {
	fields []field              // in the order of the file
	closed bool                 // what is not named is an error
	rest   map[string]any       // what the schema says of the values together
	whole  *jsonschema.Resolved // rest
	paths  branch
	source yamldoc.Value
}

// field is one property of the schema.
type field struct {
	name     string
	pointer  string // into the payload
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

// Lines describes what is selected, with references replaced, in one line for each value.
func (f *Fields) Lines() (lines []string) {
	asJSON := func(schema any) string {
		text, _ := json.Marshal(schema) // it comes from a file of text
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

// Source returns the schema as it was written.
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

// data returns the values as they are passed on.
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

// escape returns a key as a part of a JSON pointer.
func escape(key string) string { return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
