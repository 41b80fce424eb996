package payload

import (
	"errors"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	const person = "{\n\t\"type\": \"object\", \"required\": [\"age\"], \"properties\": {\"age\": {\"$ref\": \"#/$defs/n\"}}, \"$defs\": {\"n\": {\"type\": \"integer\"}}}"
	for _, c := range []struct{ schema, text, want, reason string }{
		{person, `{"age": 5, "name": "<Ada>"}`, `{"age":5,"name":"<Ada>"}`, ""},
		{person, "```json\n{\"age\": 12345678901234567890}\n```\n", `{"age":12345678901234567890}`, ""},
		{person, `{"age": "5"}`, "", "/age: is string, want integer"},
		{person, `{}`, "", `missing properties`},
		{person, "Here it is: {}", "", "not JSON: invalid character 'H'"},
		{person, `{"age": 5} {"age": 6}`, "", "not JSON: more text after the value"},
		{person, "", "", "not JSON: unexpected EOF"},
		{person, `{"age": 5`, "", "not JSON: unexpected EOF"},
		{`{"enum": ["\ud83d\ude00", "\/"]}`, `"😀"`, `"😀"`, ""},
		{`{"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}`, `[1]`, "", "/0: is integer, want string"},
		{`true`, `null`, `null`, ""},
	} {
		a, err := ReadAnswer("json-schema", c.schema)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		value, err := a.Value(c.text)
		if c.reason == "" && (err != nil || string(value) != c.want) {
			t.Errorf("%s: %s, %v, want %s", c.text, value, err, c.want)
		}
		if invalid := (*invalid)(nil); c.reason != "" && (!errors.As(err, &invalid) || !strings.Contains(err.Error(), c.reason)) {
			t.Errorf("%s: %v, want %s", c.text, err, c.reason)
		}
	}
}

func TestAnswerSchema(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		"":                                  "json-schema: not JSON: unexpected EOF",
		`{"type": "object"`:                 "json-schema: not JSON: unexpected EOF",
		`[]`:                                "json-schema: want a JSON object",
		`{"properties": {"a": {"typ": 1}}}`: "json-schema.properties.a.typ: unknown keyword (did you mean type?)",
		`{"pattern": "("}`:                  "json-schema: not a JSON Schema",
		`"object"`:                          "json-schema: want a JSON object",
		`{"$ref": "#"}`:                     "the schema is recursive",
		`{"$ref": "#/$defs/a"}`:             "want a place in this schema",
		`{"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}`: "the schema is recursive",
	} {
		_, err := ReadAnswer("json-schema", schema)
		if faults := (yamldoc.Faults)(nil); !errors.As(err, &faults) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", schema, err, want)
		}
	}
}
