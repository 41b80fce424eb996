package payload

import (
	"fmt"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// cut returns a value as it is passed to the agent: without properties that its schemas do not name, and with strings shortened if no
// schema limits them.
func cut(schemas []map[string]any, value any) any {
	switch v := value.(type) {
	case string:
		if !has(schemas, "maxLength") {
			return shortened(v)
		}
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = cut(ofItem(schemas, i), item)
		}
		return items
	case map[string]any:
		open := !has(schemas, "properties") || has(schemas, "additionalProperties") || has(schemas, "patternProperties")
		out := map[string]any{}
		for key, item := range v {
			if below := ofProperty(schemas, key); len(below) > 0 || open {
				out[key] = cut(below, item)
			}
		}
		return out
	}
	return value
}

// views returns a schema and the other schemas for the same value, if they are objects.
func views(schema any) []map[string]any {
	s, _ := schema.(map[string]any)
	if s == nil {
		return nil
	}
	all := []map[string]any{s}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		for _, below := range list {
			all = append(all, views(below)...)
		}
	}
	for _, key := range []string{"then", "else"} {
		all = append(all, views(s[key])...)
	}
	return all
}

// has reports whether one of the schemas has a keyword with a value other than false.
func has(schemas []map[string]any, keyword string) bool {
	for _, s := range schemas {
		if value, has := s[keyword]; has && value != false {
			return true
		}
	}
	return false
}

func ofItem(schemas []map[string]any, i int) (below []map[string]any) {
	for _, s := range schemas {
		if first, _ := s["prefixItems"].([]any); i < len(first) {
			below = append(below, views(first[i])...)
		} else {
			below = append(below, views(s["items"])...)
		}
	}
	return below
}

func ofProperty(schemas []map[string]any, key string) (below []map[string]any) {
	for _, s := range schemas {
		properties, _ := s["properties"].(map[string]any)
		patterns, _ := s["patternProperties"].(map[string]any)
		switch schema, named := properties[key]; {
		case schema == true:
			below = append(below, map[string]any{})
		case named:
			below = append(below, views(schema)...)
		default:
			below = append(below, views(s["additionalProperties"])...)
			for _, schema := range patterns { // any of the schemas may apply: a limit in one of them is enough
				below = append(below, views(schema)...)
			}
		}
	}
	return below
}

// shortened shortens a string that no schema limits.
func shortened(s string) string {
	first, more := plaintext.First(s, maxText)
	if !more {
		return s
	}
	return fmt.Sprintf("%s… (%d of %d characters)", first, maxText, utf8.RuneCountInString(s))
}
