package payload

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/yamldoc"
)

// Limits of a schema.
const (
	maxSchemas = 1000 // nesting depth of schemas, with each reference replaced by its target
	maxPattern = 1000 // characters of a regular expression
)

// Read reads the schema of a webhook's file. Errors have the line that they are about.
func Read(v yamldoc.Value) (*Fields, error) {
	f := &Fields{source: v}
	r := reader{root: v, left: maxSchemas}
	if err := r.version(); err != nil {
		return nil, err
	}
	r.kinds = kinds(r.draft7)
	err := r.top(f)
	if err == nil {
		f.whole, err = resolved(v, f.rest)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// reader converts a schema to one of 2020-12 without references.
type reader struct {
	root   yamldoc.Value
	draft7 bool
	kinds  map[string]kind
	left   int // how many more schemas are allowed
}

// version reads $schema.
func (r *reader) version() error {
	v, has := r.root.Get("$schema")
	if !has {
		return nil
	}
	uri, err := v.Text()
	if err != nil {
		return err
	}
	switch _, name, _ := strings.Cut(strings.TrimSuffix(uri, "#"), "://json-schema.org/"); name {
	case "draft-07/schema":
		r.draft7 = true
	case "draft/2020-12/schema":
	default:
		return v.Wrong(fmt.Sprintf("%q: want http://json-schema.org/draft-07/schema# or https://json-schema.org/draft/2020-12/schema", uri))
	}
	return nil
}

// top reads the schemas of the fields, and the part that concerns several fields.
func (r *reader) top(f *Fields) error {
	entries, err := r.root.Entries()
	if err != nil {
		return err
	}
	f.rest = map[string]any{}
	for _, e := range entries {
		switch e.Key {
		case "$schema", "$defs", "definitions":
		case "properties":
			err = r.properties(f, e.Value)
		case "additionalProperties":
			if on, notBool := e.Value.Bool(); notBool != nil || on {
				err = e.Value.Wrong("can only be false here: a value that is to be passed on is named in properties")
			}
			f.closed = true
		case "$ref", "patternProperties", "unevaluatedProperties", "propertyNames":
			err = e.Value.Wrong("not possible here: a value that is to be passed on is named in properties")
		default:
			err = r.keyword(f.rest, r.root, e)
		}
		if err != nil {
			return err
		}
	}
	if len(f.fields) == 0 {
		return r.root.Wrong("names no value: want properties with one or more")
	}
	return r.required(f)
}

// required moves the names in required to the fields.
func (r *reader) required(f *Fields) error {
	names, _ := f.rest["required"].([]any)
	delete(f.rest, "required")
	for _, name := range names {
		i := slices.IndexFunc(f.fields, func(p field) bool { return p.name == name })
		if i < 0 {
			v, _ := r.root.Get("required")
			return v.Wrong(fmt.Sprintf("%q is not one of the properties", name))
		}
		f.fields[i].required = true
	}
	return nil
}

func (r *reader) properties(f *Fields, v yamldoc.Value) error {
	entries, err := v.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		p := field{name: e.Key}
		path := []string{e.Key}
		if from, has := e.Value.Get("from"); has {
			if path, err = pointer(from); err != nil {
				return err
			}
		}
		if p.schema, err = r.schema(e.Value, "from"); err != nil {
			return err
		}
		if p.resolved, err = resolved(e.Value, p.schema); err != nil {
			return err
		}
		for _, part := range path {
			p.pointer += escape(part)
		}
		f.paths.add(path, p.name)
		f.list = f.list || len(path) == 0 || isIndex(path[0])
		f.fields = append(f.fields, p)
	}
	return nil
}

// resolved returns a schema that is ready for use.
func resolved(v yamldoc.Value, schema any) (*jsonschema.Resolved, error) {
	s, err := resolve(schema)
	if err != nil {
		return nil, v.Wrong("not a JSON Schema: " + plaintext.Short(plaintext.Line(innermost(err).Error()), 2*maxQuoted))
	}
	return s, nil
}

// pointer reads a JSON pointer.
func pointer(v yamldoc.Value) ([]string, error) {
	s, err := v.Text()
	if err != nil {
		return nil, err
	}
	path, err := split(s)
	if err != nil {
		return nil, v.Wrong(err.Error())
	}
	return path, nil
}

// schema reads a schema. It skips the keys besides, which the caller reads.
func (r *reader) schema(v yamldoc.Value, besides ...string) (any, error) {
	if r.left--; r.left < 0 {
		return nil, v.Wrong(fmt.Sprintf("the schema is recursive or has more than %d parts", maxSchemas))
	}
	if on, err := v.Bool(); err == nil {
		return on, nil
	}
	entries, err := v.Entries()
	if err != nil {
		return nil, err
	}
	if target, has := v.Get("$ref"); has && r.draft7 { // in draft 7, $ref makes the keywords beside it ineffective
		return r.reference(target)
	}
	out := map[string]any{}
	for _, e := range entries {
		if slices.Contains(besides, e.Key) {
			continue
		}
		if err := r.keyword(out, v, e); err != nil {
			return nil, err
		}
	}
	if all, _ := out["allOf"].([]any); len(out) == 1 && len(all) == 1 {
		return all[0], nil // a single schema, often a $ref
	}
	return out, nil
}

// reference reads the target of a $ref.
func (r *reader) reference(v yamldoc.Value) (any, error) {
	ref, err := v.Text()
	if err != nil {
		return nil, err
	}
	if ref == "#" {
		return nil, v.Wrong("the schema is recursive")
	}
	target, found := r.root, strings.HasPrefix(ref, "#/")
	for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		if found {
			target, found = target.Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
		}
	}
	if !found {
		return nil, v.Wrong(fmt.Sprintf("%q: want a place in this schema, such as #/$defs/NAME", ref))
	}
	return r.schema(target, "from")
}
