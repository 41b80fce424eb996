package payload

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// one is a schema of one value.
func just(schema string) string { return "properties:\n  v: " + schema }

func TestWhatIsPassedOn(t *testing.T) {
	long := strings.Repeat("ü", 500)
	for _, c := range []struct{ schema, payload, want string }{
		{just("true"), `{"v": {"b": 1, "a": [1.50, 1e2, -0]}}`, `v: {"a":[1.50,1e2,-0],"b":1}`},
		{just("{}"), `{"v": null}`, "v: null"},
		{just("{}"), `{"w": 1}`, ""},
		{just("{}"), `{"\u0076": "\u003cb\u003e\ud800"}`, "v: \"<b>\ufffd\""},
		{just("{}"), `{"v": "` + long + `"}`, `v: "` + long + `"`},
		{just("{}"), `{"v": "` + long + `x"}`, `v: "` + long + `… (500 of 501 characters)"`},
		{just("{maxLength: 501}"), `{"v": "` + long + `x"}`, `v: "` + long + `x"`},
		{just("{anyOf: [{type: integer}, {maxLength: 501}]}"), `{"v": "` + long + `x"}`, `v: "` + long + `x"`},
		{just("{items: {maxLength: 600}, prefixItems: [true]}"), `{"v": ["` + long + `x", "` + long + `x"]}`, `v: ["` + long + `… (500 of 501 characters)","` + long + `x"]`},
		{just("{additionalProperties: {maxLength: 600}}"), `{"v": {"k": "` + long + `x"}}`, `v: {"k":"` + long + `x"}`},
		{just("{patternProperties: {'^k': {maxLength: 600}}}"), `{"v": {"k": "` + long + `x"}}`, `v: {"k":"` + long + `x"}`},
		{just("{properties: {a: true}}"), `{"v": {"a": {"b": 1}, "c": 2}}`, `v: {"a":{"b":1}}`},
		{just("{properties: {a: true}, additionalProperties: true}"), `{"v": {"a": 1, "c": 2}}`, `v: {"a":1,"c":2}`},
		{just("{allOf: [{properties: {a: true}}], properties: {b: true}}"), `{"v": {"a": 1, "b": 2, "c": 3}}`, `v: {"a":1,"b":2}`},
		{just("{items: {properties: {a: true}}}"), `{"v": [{"a": 1, "c": 2}, 3]}`, `v: [{"a":1},3]`},
		{just("{from: /a~1b/~0c/1/x}"), `{"a/b": {"~c": [0, {"x": 5}]}}`, "v: 5"},
		{just("{from: /}"), `{"": 5}`, "v: 5"},
		{just("{from: /0/id}"), `[{"id": 5, "b": 1}, {"id": 6}]`, "v: 5"},
		{just("{from: /0/id}"), `{"0": {"id": 5}}`, "v: 5"},
		{just("{from: ''}"), ` [1, {"a": "b"}]`, `v: [1,{"a":"b"}]`},
		{just("{from: '', items: {properties: {a: true}}}"), `[{"a": 1, "c": 2}]`, `v: [{"a":1}]`},
		{just("{from: ''}"), `{"a": 1}`, `v: {"a":1}`},
		{"properties:\n  all: {from: ''}\n  a: true", `{"a": 1}`, "all: {\"a\":1}\na: 1"},
		{just("{from: /a/01}"), `{"a": [1, 2]}`, ""},
		{just("{from: /a/-}"), `{"a": [1, 2]}`, ""},
		{just("{from: /a/b}"), `{"a": 1}`, ""},
		{just("{from: /a/b}"), `{"a": [[{"b": 2}]]}`, ""},
		{"properties:\n  b: {from: /a/b}\n  a: true\n  c: {from: /a/l/1}", `{"a": {"b": 1, "l": [1, 2]}}`, "b: 1\na: {\"b\":1,\"l\":[1,2]}\nc: 2"},
		{"$defs: {s: {type: string}}\n" + just("{$ref: '#/$defs/s', maxLength: 3}"), `{"v": "abc"}`, `v: "abc"`},
		{"definitions: {s: {type: array, items: {$ref: '#/definitions/i'}}, i: {type: integer}}\n" + just("{$ref: '#/definitions/s'}"), `{"v": [1]}`, "v: [1]"},
		{"$schema: http://json-schema.org/draft-07/schema#\n" + just("{items: [{type: integer}], additionalItems: {type: string}}"), `{"v": [1, "a"]}`, `v: [1,"a"]`},
		{just("{type: integer}"), `{"v": 12345678901234567890123}`, "v: 12345678901234567890123"},
		{just("{type: integer}"), `{"v": 5.0}`, "v: 5.0"},
		{just("{minLength: 65536}"), `{"v": "` + strings.Repeat("x", 70000) + `"}`, `v: "` + strings.Repeat("x", 500) + `… (500 of 70000 characters)"`},
		{just("{uniqueItems: true, enum: [[1, {a: null}], [2]]}"), `{"v": [1, {"a": null}]}`, `v: [1,{"a":null}]`},
	} {
		data, err := must(t, c.schema).Select([]byte(c.payload))
		if got := strings.TrimSuffix(lines(data), "\n"); err != nil || got != c.want {
			t.Errorf("%s\n%.200s: %v\n%.300s\nwant\n%.300s", c.schema, c.payload, err, got, c.want)
		}
	}
}

// A payload that is refused says where it is wrong.
func TestRefusedPayloads(t *testing.T) {
	digits := strings.Repeat("9", 101)
	for _, c := range []struct{ schema, payload, want string }{
		{just("{type: string}"), `{"v": 5}`, "/v: is integer, want string"},
		{just("{type: [string, 'null']}"), `{"v": 5.5}`, "/v: is number, want string null"},
		{just("{from: /a/b, type: string}"), `{"a": {"b": null}}`, "/a/b: is null, want string"},
		{"required: [v]\n" + just("{from: /a/b}"), `{"a": {}}`, "/a/b: is missing"},
		{just("{items: {properties: {id: {type: integer}}}}"), `{"v": [{"id": 1}, {"id": "x"}]}`, "/v/1/id: is string, want integer"},
		{just("{items: {required: [id]}}"), `{"v": [{"id": 1}, {}]}`, `/v/1: required: missing properties: ["id"]`},
		{just("{maxLength: 3}"), `{"v": "` + strings.Repeat("x", 9999) + `"}`, "/v: is longer than 3 characters"},
		{just("{minLength: 3}"), `{"v": "x"}`, "/v: is shorter than 3 characters"},
		{just("{pattern: '^a+$'}"), `{"v": "b"}`, "/v: does not match the pattern ^a+$"},
		{just("{enum: [a, b]}"), `{"v": "c"}`, "/v: is none of [a b]"},
		{just("{const: 3}"), `{"v": "c\u001b[31m\nTASK"}`, "/v: is not 3"},
		{just("{multipleOf: 3}"), `{"v": 4}`, "/v: is not a multiple of 3"},
		{just("{minimum: 3}"), `{"v": 2}`, "/v: is below 3"},
		{just("{exclusiveMinimum: 3}"), `{"v": 3}`, "/v: is not above 3"},
		{just("{maximum: 3}"), `{"v": 4}`, "/v: is above 3"},
		{just("{propertyNames: {maxLength: 3}}"), `{"v": {"secret": 1}}`, "/v: does not fit maxLength of a schema inside its own"},
		{just("{not: {type: string}, if: {type: integer}, then: {maximum: 3}}"), `{"v": 4}`, "/v: does not fit maximum of a schema inside its own"},
		{just("{exclusiveMaximum: 3}"), `{"v": 3}`, "/v: is not below 3"},
		{just("{anyOf: [{type: string}, {minimum: 3}]}"), `{"v": 1}`, "/v: fits none of the schemas of anyOf"},
		{just("{oneOf: [true, true]}"), `{"v": 1}`, "/v: does not fit exactly one of the schemas of oneOf"},
		{just("{not: {type: integer}}"), `{"v": 1}`, "/v: fits the schema of not, or is not allowed"},
		{just("{contains: {type: string}}"), `{"v": [1]}`, "/v: has no item that fits contains"},
		{just("{allOf: [{items: {type: string}}]}"), `{"v": [1]}`, "/v/0: is integer, want string"},
		{"$defs: {s: {type: string}}\n" + just("{$ref: '#/$defs/s', maxLength: 3}"), `{"v": 5}`, "/v: is integer, want string"},
		{"$schema: http://json-schema.org/draft-07/schema#\n" + just("{items: [true], additionalItems: {type: string}}"), `{"v": [1, 2]}`, "/v/1: is integer, want string"},
		{"$schema: http://json-schema.org/draft-07/schema#\n" + just("{dependencies: {a: [b]}}"), `{"v": {"a": 1}}`, `/v: dependentRequired["a"]: missing properties ["b"]`},
		{just("false"), `{"v": 1}`, "/v: fits the schema of not, or is not allowed"},
		{just("{type: string}") + "\n  w: true\ndependentRequired: {w: [v]}", `{"w": 1}`, `dependentRequired["w"]: missing properties ["v"]`},
		{"additionalProperties: false\n" + just("{from: /a/b}"), `{"a": {"x": 1}, "w": 1}`, "/w: is not one of the fields, and additionalProperties is false"},
		{just("true"), `{"v": 1, "v": 2}`, "/v: given twice"},
		{just("true"), `{"v": 1, "\u0076": 2}`, "/v: given twice"},
		{just("true"), `{"v": {"a": [{"b": 1, "b": 2}]}}`, "/v/a/0/b: given twice"},
		{just("{from: /a/b}"), `{"a": {"b": 1}, "a": {}}`, "/a: given twice"},
		{just("true"), `{"v": ` + digits + `}`, "/v: a number of 101 characters, more than 100"},
		{just("true"), `{"v": [1e999]}`, "/v/0: the number is out of range"},
		{just("true"), `{"v": ` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}`, "/v" + strings.Repeat("/0", 48) + "/…: more than 100 levels deep"},
		{just("true"), `{"v": [` + strings.Repeat("0,", 1<<16) + `0]}`, "/v/65535: the fields select more than 65536 values"},
		{just("{items: {maxLength: 60000}}"), `{"v": [` + strings.Repeat(`"`+strings.Repeat("x", 60000)+`",`, 5) + `0]}`, "/v: the selected values have more than 262144 bytes"},
		{just("true"), `{"v": 1`, "byte 7: not JSON: unexpected end of JSON input"},
		{just("true"), `{"v": 01}`, "byte 8: not JSON: invalid character '1' after object key:value pair"},
		{just("true"), `{"v": 1} x`, "byte 10: not JSON: invalid character 'x' after top-level value"},
		{just("true"), "{\"v\": \"\xff\"}", "byte 7: not valid UTF-8"},
		{just("true"), "{\"v\": \"a\nb\"}", "byte 9: not JSON: invalid character '\\n' in string literal"},
		{just("true"), "\ufeff{}", "byte 1: not JSON: invalid character 'ï' looking for beginning of value"},
		{just("true"), `[1]`, `is a list, not a JSON object: select its items with from: /0/NAME, or all of it with from: ""`},
		{just("{from: ''}"), `"v"`, "not a JSON object"},
		{just("{from: /0}"), ``, "byte 0: not JSON: unexpected end of JSON input"},
		{"required: [v]\n" + just("{from: /1/id}"), `[{"id": 1}]`, "/1/id: is missing"},
		{just("{from: /0/id, type: string}"), `[{"id": 1}]`, "/0/id: is integer, want string"},
		{just("{from: '', maxItems: 1}"), `[1, 2]`, "maxItems: array length 2 is greater than 1"},
		{just("true"), `"v"`, "not a JSON object"},
		{just("true"), ``, "byte 0: not JSON: unexpected end of JSON input"},
		{just("true"), `{"w": ` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "byte 10006: not JSON: invalid character '[' exceeded max depth"},
	} {
		data, err := must(t, c.schema).Select([]byte(c.payload))
		var invalid *invalid
		if !errors.As(err, &invalid) || err.Error() != c.want || data != nil {
			t.Errorf("%s\n%.200s: %v\nwant %s", c.schema, c.payload, err, c.want)
		}
	}
}

// A schema that cannot be meant so is refused when the file is read, with its line.
func TestRefusedSchemas(t *testing.T) {
	many := strings.Repeat("{not: ", 1000) + "true" + strings.Repeat("}", 1000)
	double := "$defs: {d0: true"
	for i := range 20 {
		double += fmt.Sprintf(", d%d: {allOf: [{$ref: '#/$defs/d%d'}, {$ref: '#/$defs/d%d'}]}", i+1, i, i)
	}
	for schema, want := range map[string]string{
		"true":                                  "2: fields: want a section",
		"{}":                                    "2: fields: names no value",
		"properties: {}":                        "2: fields: names no value",
		"properties: [a]":                       "2: fields.properties: want a section",
		"properties: {a: }":                     "2: fields.properties.a: want a section",
		"properties: {a: true, a: true}":        "2: fields.properties.a: given twice",
		"property: {a: true}":                   "2: fields.property: unknown keyword (did you mean properties?)",
		just("true") + "\nreqired: [v]":         "4: fields.reqired: unknown keyword (did you mean required?)",
		just("true") + "\nrequired: [w]":        `4: fields.required: "w" is not one of the properties`,
		just("{maxLenght: 3}"):                  "3: fields.properties.v.maxLenght: unknown keyword (did you mean maxLength?)",
		just("{type: text}"):                    `3: fields.properties.v.type: want string, number,`,
		just("{type: null}"):                    `3: fields.properties.v.type: want string, number,`,
		just("{type: [string, strin]}"):         `3: fields.properties.v.type: want string, number,`,
		just("{maxLength: long}"):               "3: fields.properties.v: not a JSON Schema: ",
		just("{maxLength: 100000}"):             "3: fields.properties.v.maxLength: more than 65536",
		just("{minimum: a}"):                    "3: fields.properties.v: not a JSON Schema: ",
		just("{exclusiveMinimum: true}"):        "3: fields.properties.v: not a JSON Schema: ", // draft 4
		just("{pattern: '(?=a)'}"):              "3: fields.properties.v: not a JSON Schema: ",
		just("{pattern: '((a{999}){999}){9}'}"): "3: fields.properties.v: not a JSON Schema: ",
		just("{pattern: '" + strings.Repeat("a", 1001) + "'}"):              "3: fields.properties.v.pattern: longer than 1000 characters",
		just("{items: [true]}"):                                             "3: fields.properties.v.items: a list is draft 7: write prefixItems",
		just("{dependencies: {}}"):                                          "3: fields.properties.v.dependencies: unknown keyword",
		just("{from: v}"):                                                   `3: fields.properties.v.from: "v": want a JSON pointer`,
		just("{from: /a~2}"):                                                `3: fields.properties.v.from: "/a~2": in a JSON pointer ~ is written as ~0`,
		just("{properties: {a: {from: /b}}}"):                               "3: fields.properties.v.properties.a.from: unknown keyword",
		just("{$ref: '#'}"):                                                 `3: fields.properties.v.$ref: the schema is recursive`,
		just("{$ref: 'https://x/y'}"):                                       `3: fields.properties.v.$ref: "https://x/y": want a place in this schema`,
		just("{$ref: '#/$defs/x'}"):                                         `3: fields.properties.v.$ref: "#/$defs/x": want a place in this schema`,
		just("{$ref: '#/properties/v'}"):                                    "3: fields.properties.v: the schema is recursive or has more than 1000 parts",
		just("{$dynamicRef: '#a'}"):                                         "3: fields.properties.v.$dynamicRef: unknown keyword",
		just(many):                                                          "the schema is recursive or has more than 1000 parts",
		double + "}\n" + just("{$ref: '#/$defs/d20'}"):                      "the schema is recursive or has more than 1000 parts",
		"additionalProperties: true\n" + just("true"):                       "2: fields.additionalProperties: can only be false here",
		"patternProperties: {a: true}\n" + just("true"):                     "2: fields.patternProperties: not possible here",
		"$schema: http://json-schema.org/draft-04/schema#\n" + just("true"): `2: fields.$schema: "http://json-schema.org/draft-04/schema#": want`,
		"$schema: http://json-schema.org/draft-07/schema#\n" + just("{prefixItems: [true]}"): "4: fields.properties.v.prefixItems: unknown keyword",
	} {
		_, err := read(schema)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.300s: %v\nwant %s", schema, err, want)
		}
	}
}

// BenchmarkSelect selects four values of a payload of 20 KB, as those of GitHub are.
func BenchmarkSelect(b *testing.B) {
	fields := must(b, release)
	body := []byte(`{"action": "published", "release": {"tag_name": "v1", "id": 7, "authors": []}, "repository": {` +
		strings.Repeat(`"some_url": "https://api.example.org/repos/x/y", "nested": {"number": 12345, "list": [true, null]},`, 200) + `"a": 1}}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fields.Select(body); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead reads the schema of a file.
func BenchmarkRead(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		must(b, release)
	}
}

// FuzzSelect reads any schema and selects from any payload. Whatever it passes on is JSON, bounded, and from a payload that is JSON.
func FuzzSelect(f *testing.F) {
	f.Add(release, `{"action": "published", "release": {"tag_name": "v1", "id": 7, "authors": [{"login": "a"}]}}`)
	f.Add(just("{type: string, pattern: '^a', maxLength: 5}"), `{"v": "abc"}`)
	f.Add(just("{anyOf: [{items: {$ref: '#/$defs/d'}}, {not: {}}]}")+"\n$defs: {d: {enum: [1, a, null]}}", `{"v": [1, "a", null, 1e400]}`)
	f.Add("$schema: http://json-schema.org/draft-07/schema#\n"+just("{dependencies: {a: [b], c: {required: [d]}}, items: [true], additionalItems: false}"), `{"v": {"a": 1}}`)
	f.Add(just("{if: {type: object}, then: {propertyNames: {maxLength: 3}}, else: {uniqueItems: true, contains: true, unevaluatedItems: false}}"), `{"v": [1, 1.0]}`)
	f.Fuzz(func(t *testing.T, schema, body string) {
		fields, err := read(schema)
		if err != nil {
			return
		}
		data, err := fields.Select([]byte(body))
		if err != nil {
			if text := err.Error(); !errors.As(err, new(*invalid)) || !utf8.ValidString(text) || strings.ContainsAny(text, "\n\x1b") || len(text) > 4000 {
				t.Errorf("error %q", text)
			}
			return
		}
		if !json.Valid([]byte(body)) {
			t.Errorf("%q is not JSON", body)
		}
		size := 0
		for _, d := range data {
			if size += len(d.Value); !json.Valid(d.Value) {
				t.Errorf("%s: %q is not JSON", d.Key, d.Value)
			}
		}
		if size > 256<<10 {
			t.Errorf("%d bytes", size)
		}
	})
}
