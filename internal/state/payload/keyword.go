package payload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// kind is the kind of a keyword's value.
type kind int

const (
	unknown    kind = iota
	annotation      // a value that is not checked
	plain           // data
	one             // a schema
	several         // a list of schemas
	named           // schemas by property name
	special         // handled by reader.special
)

// kinds returns the keywords of a draft.
func kinds(draft7 bool) map[string]kind {
	all := map[string]kind{}
	add := func(k kind, words string) {
		for word := range strings.FieldsSeq(words) {
			all[word] = k
		}
	}
	add(annotation, "$id $comment $defs definitions title description default examples readOnly writeOnly format contentEncoding contentMediaType")
	add(plain, "type enum const multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength pattern "+
		"minItems maxItems uniqueItems minProperties maxProperties required")
	add(one, "not if then else contains additionalProperties propertyNames")
	add(several, "anyOf oneOf")
	add(named, "properties patternProperties")
	add(special, "$ref allOf items")
	if draft7 {
		add(special, "additionalItems dependencies")
		return all
	}
	add(annotation, "deprecated contentSchema")
	add(plain, "minContains maxContains dependentRequired")
	add(one, "unevaluatedItems unevaluatedProperties")
	add(several, "prefixItems")
	add(named, "dependentSchemas")
	return all
}

// keyword reads one keyword of a schema into out, in the form of 2020-12.
func (r *reader) keyword(out map[string]any, schema yamldoc.Value, e yamldoc.Entry) (err error) {
	switch r.kinds[e.Key] {
	case annotation:
	case plain:
		if out[e.Key], err = e.Value.Data(); err == nil {
			err = fits(e, out[e.Key])
		}
	case one:
		out[e.Key], err = r.schema(e.Value)
	case several:
		out[e.Key], err = r.several(e.Value)
	case named:
		out[e.Key], err = r.named(e.Value)
	case special:
		err = r.special(out, schema, e)
	default:
		near := plaintext.Similar(e.Key, slices.Sorted(maps.Keys(r.kinds)))
		err = e.Value.Wrong("unknown keyword" + plaintext.Suggestion(near[:min(1, len(near))]...))
	}
	return err
}

// special reads a keyword whose form differs between drafts.
func (r *reader) special(out map[string]any, schema yamldoc.Value, e yamldoc.Entry) error {
	var all []any
	var err error
	switch e.Key {
	case "$ref":
		all = make([]any, 1)
		all[0], err = r.reference(e.Value)
	case "allOf":
		all, err = r.several(e.Value)
	case "items":
		return r.items(out, e.Value)
	case "additionalItems":
		if items, _ := schema.Get("items"); isList(items) { // the keyword is ignored without a list of items
			out["items"], err = r.schema(e.Value)
		}
		return err
	case "dependencies":
		return r.dependencies(out, e.Value)
	}
	before, _ := out["allOf"].([]any)
	out["allOf"] = append(before, all...)
	return err
}

func isList(v yamldoc.Value) bool {
	_, err := v.Items()
	return err == nil
}

func (r *reader) items(out map[string]any, v yamldoc.Value) (err error) {
	switch {
	case !isList(v):
		out["items"], err = r.schema(v)
	case r.draft7:
		out["prefixItems"], err = r.several(v)
	default:
		err = v.Wrong("a list is draft 7: write prefixItems, or $schema: http://json-schema.org/draft-07/schema#")
	}
	return err
}

func (r *reader) dependencies(out map[string]any, v yamldoc.Value) error {
	entries, err := v.Entries()
	if err != nil {
		return err
	}
	names, schemas := map[string]any{}, map[string]any{}
	for _, e := range entries {
		if isList(e.Value) {
			names[e.Key], err = e.Value.Texts()
		} else {
			schemas[e.Key], err = r.schema(e.Value)
		}
		if err != nil {
			return err
		}
	}
	out["dependentRequired"], out["dependentSchemas"] = names, schemas
	return nil
}

func (r *reader) several(v yamldoc.Value) ([]any, error) {
	items, err := v.Items()
	schemas := make([]any, len(items))
	for i, item := range items {
		if err == nil {
			schemas[i], err = r.schema(item)
		}
	}
	return schemas, err
}

func (r *reader) named(v yamldoc.Value) (map[string]any, error) {
	entries, err := v.Entries()
	schemas := make(map[string]any, len(entries))
	for _, e := range entries {
		if err == nil {
			schemas[e.Key], err = r.schema(e.Value)
		}
	}
	return schemas, err
}

// fits returns an error for a keyword's value that the library would accept and never match, or that would take too long.
func fits(e yamldoc.Entry, value any) error {
	switch e.Key {
	case "type":
		types, isList := value.([]any)
		if !isList {
			types = []any{value}
		}
		for _, t := range types {
			if word, _ := t.(string); !slices.Contains([]string{"string", "number", "integer", "boolean", "object", "array", "null"}, word) {
				return e.Value.Wrong(`want string, number, integer, boolean, object, array or "null", or a list of them`)
			}
		}
	case "pattern":
		if s, _ := value.(string); len(s) > maxPattern {
			return e.Value.Wrong(fmt.Sprintf("longer than %d characters", maxPattern))
		}
	case "maxLength", "minLength":
		if n, _ := value.(int64); n > maxChecked {
			return e.Value.Wrong(fmt.Sprintf("more than %d", maxChecked))
		}
	}
	return nil
}
