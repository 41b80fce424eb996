package payload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// read reads a schema that is written as the value of fields in a file.
func read(schema string) (fields *Fields, err error) {
	text := "fields:\n  " + strings.ReplaceAll(strings.Trim(schema, "\n"), "\n", "\n  ") + "\n"
	doc, err := yamldoc.Parse("hook.md", []byte(text), 1)
	if err != nil {
		return nil, err
	}
	err = doc.Decode([]yamldoc.Field{{Key: "fields", Read: func(v yamldoc.Value) error {
		fields, err = Read(v)
		return err
	}}})
	return fields, err
}

func must(t testing.TB, schema string) *Fields {
	t.Helper()
	fields, err := read(schema)
	if err != nil {
		t.Fatalf("%s\n%v", schema, err)
	}
	return fields
}

// lines writes data as a prompt has it.
func lines(data []Datum) string {
	var b strings.Builder
	for _, d := range data {
		fmt.Fprintf(&b, "%s: %s\n", d.Key, d.Value)
	}
	return b.String()
}

const release = `
type: object
required: [action, tag]
properties:
  tag: {type: string, from: /release/tag_name}
  action: {enum: [published, edited]}
  number: {type: integer, from: /release/id}
  authors: {type: array, items: {type: object, properties: {login: {type: string}}}, from: /release/authors}
  first: {from: /release/authors/0/login}
`

func TestSelect(t *testing.T) {
	data, err := must(t, release).Select([]byte(`{"action": "published", "sender": {"id": 3}, "release": {"tag_name": "v1",
		"id": 12345678901234567890, "body": [[[]]], "authors": [{"login": "ann", "id": 1}, {"login": "<bob>"}]}}`))
	want := "tag: \"v1\"\naction: \"published\"\nnumber: 12345678901234567890\n" +
		"authors: [{\"login\":\"ann\"},{\"login\":\"<bob>\"}]\nfirst: \"ann\"\n"
	if err != nil || lines(data) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, lines(data), want)
	}
}
