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
	maxSchemas = 1000 // schemas inside each other, with each reference replaced by what it refers to
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

// reader turns a schema as written into one of 2020-12 without references.
type reader struct {
	root   yamldoc.Value
	draft7 bool
	kinds  map[string]kind
	left   int // how many schemas may follow
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

// top reads the schema of the fields, and what it says of them together.
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

// required moves the names of required to the fields.
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
		f.fields = append(f.fields, p)
	}
	return nil
}

// resolved is a schema ready for use.
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
	parts := strings.Split(s, "/")
	if len(parts) < 2 || parts[0] != "" {
		return nil, v.Wrong(fmt.Sprintf("%q: want a JSON pointer, such as /workflow_run/head_branch", s))
	}
	for i, part := range parts {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(part), "~") {
			return nil, v.Wrong(fmt.Sprintf("%q: in a JSON pointer ~ is written as ~0", s))
		}
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts[1:], nil
}

// schema reads a schema; the keys besides are for the caller.
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
	if target, has := v.Get("$ref"); has && r.draft7 { // which ignores the keywords beside it
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
		return all[0], nil // often a $ref
	}
	return out, nil
}

// reference reads what a $ref refers to.
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
