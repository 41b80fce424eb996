package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// Answer is a JSON Schema for the answer of an agent. It is immutable.
type Answer struct {
	source   string
	schema   any // the schema without references
	resolved *jsonschema.Resolved
}

// ReadAnswer parses a schema written as JSON. The error is a yamldoc.Faults, whose keys begin with key.
func ReadAnswer(key, text string) (*Answer, error) {
	value, err := decode(text)
	if err != nil {
		return nil, yamldoc.Faults{{Key: key, Reason: "not JSON: " + err.Error()}}
	}
	switch value.(type) {
	case map[string]any, bool:
	default:
		return nil, yamldoc.Faults{{Key: key, Reason: "want a JSON object"}}
	}
	line, err := json.Marshal(value) // JSON in this form has no tabs and escapes that YAML lacks
	if err != nil {
		return nil, err
	}
	doc, err := yamldoc.Parse("", fmt.Appendf(nil, "{%q: %s}", key, line), 1)
	if err != nil {
		return nil, err
	}
	a := &Answer{source: string(line)}
	return a, doc.Decode([]yamldoc.Field{{Key: key, Read: a.read}})
}

func (a *Answer) read(v yamldoc.Value) (err error) {
	r := reader{root: v, left: maxSchemas}
	if err = r.version(); err != nil {
		return err
	}
	r.kinds = kinds(r.draft7)
	if a.schema, err = r.schema(v, "$schema"); err == nil {
		a.resolved, err = resolved(v, a.schema)
	}
	return err
}

// Source returns the schema in one line of JSON.
func (a *Answer) Source() string { return a.source }

// Value returns the JSON value in an answer, on one line. It removes a code block around the value, which models often write. The error
// is an *invalid.
func (a *Answer) Value(text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	if _, rest, more := strings.Cut(text, "\n"); more && strings.HasPrefix(text, "```") {
		text = strings.TrimSuffix(rest, "```")
	}
	value, err := decode(text)
	if err != nil {
		return nil, &invalid{"", "not JSON: " + err.Error()}
	}
	if checked := instance(value); a.resolved.Validate(checked) != nil {
		return nil, explain(a.schema, checked, "")
	}
	var line bytes.Buffer
	if err := json.Compact(&line, []byte(text)); err != nil {
		return nil, &invalid{"", err.Error()}
	}
	return line.Bytes(), nil
}

// decode returns the only JSON value of a text.
func decode(text string) (value any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&value); err == nil {
		if _, after := d.Token(); !errors.Is(after, io.EOF) {
			err = fmt.Errorf("more text after the value, which ends at byte %d", d.InputOffset())
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return value, err
}
