package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Fields of a request in the order in which they are compared. The rest comes after them.
const (
	fieldModel    = "model"
	fieldThinking = "thinking"
	fieldSystem   = "system"
	fieldTools    = "tools"
	fieldMessages = "messages"
	fieldMarks    = "cache marks"
)

// body is the body of a request in parts.
type body struct {
	fields map[string]any // without the following ones
	system []string       // texts of the system prompt
	tools  []any
	said   []any
	marks  []string // where the marks of the service's cache are
}

var errBody = errors.New("its requests are not those of a model service")

func parse(text []byte) (b body, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&b.fields); err != nil {
		return b, errors.Join(errBody, err)
	}
	unmark(b.fields, "", &b.marks)
	slices.Sort(b.marks)
	b.tools, _ = b.fields["tools"].([]any)
	b.said, _ = b.fields["messages"].([]any)
	b.system = texts(b.fields["system"])
	for len(b.said) > 0 { // OpenAI's API has the system prompt there
		m, _ := b.said[0].(map[string]any)
		if m["role"] != "system" && m["role"] != "developer" {
			break
		}
		b.system, b.said = append(b.system, texts(m["content"])...), b.said[1:]
	}
	for _, key := range []string{"tools", "messages", "system"} {
		delete(b.fields, key)
	}
	return b, nil
}

// unmark removes the marks of the service's cache from a value, and notes where they were.
func unmark(value any, place string, marks *[]string) {
	switch v := value.(type) {
	case map[string]any:
		if _, is := v["cache_control"]; is {
			delete(v, "cache_control")
			*marks = append(*marks, strings.TrimPrefix(place, " "))
		}
		for key, part := range v {
			unmark(part, place+" "+key, marks)
		}
	case []any:
		for i, part := range v {
			unmark(part, fmt.Sprintf("%s %d", place, i+1), marks)
		}
	}
}

// texts returns the texts in a content: a text, or a list of blocks.
func texts(content any) (list []string) {
	switch v := content.(type) {
	case string:
		return []string{v}
	case []any:
		for _, part := range v {
			if block, is := part.(map[string]any); is {
				text, _ := block["text"].(string)
				list = append(list, text)
			}
		}
	}
	return list
}

// compare returns the first difference between two bodies; nil if there is none. capped says that the run had a limit of cost, which may
// have lowered the limit of the answer then.
func compare(then, now []byte, capped bool) (*Difference, error) {
	a, err := parse(then)
	if err != nil {
		return nil, err
	}
	b, err := parse(now)
	if err != nil {
		return nil, err
	}
	return cmp.Or(
		a.value(b, fieldModel, "model"),
		a.value(b, fieldThinking, "thinking", "output_config", "reasoning_effort"),
		lines(fieldSystem, "", strings.Join(a.system, "\n\n"), strings.Join(b.system, "\n\n")),
		compareTools(a.tools, b.tools),
		compareMessages(a.said, b.said),
		a.others(b, capped),
		lines(fieldMarks, "", strings.Join(a.marks, "\n"), strings.Join(b.marks, "\n")),
	), nil
}

// value compares some fields.
func (b body) value(now body, field string, keys ...string) *Difference {
	for _, key := range keys {
		if d := values(field, "", b.fields[key], now.fields[key]); d != nil {
			return d
		}
	}
	return nil
}

// others compares the remaining fields.
func (b body) others(now body, capped bool) *Difference {
	keys := slices.Sorted(maps.Keys(b.fields))
	for key := range now.fields {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		then, is := b.fields[key].(json.Number)
		if is && capped && strings.HasPrefix(key, "max_") {
			most, _ := now.fields[key].(json.Number)
			low, _ := then.Int64()
			if high, err := most.Int64(); err == nil && low <= high {
				continue
			}
		}
		if d := values(key, "", b.fields[key], now.fields[key]); d != nil {
			return d
		}
	}
	return nil
}

// values compares two JSON values: texts by lines, others as a whole.
func values(field, place string, then, now any) *Difference {
	a, isText := then.(string)
	b, alsoText := now.(string)
	if isText && alsoText {
		return lines(field, place, a, b)
	}
	if a, b = plain(then), plain(now); a == b {
		return nil
	}
	return &Difference{Field: field, Place: place, Then: a, Now: b}
}

const nothing = "none"

// plain returns a JSON value in a form that depends on the value alone.
func plain(value any) string {
	if value == nil {
		return nothing
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// lines compares two texts by lines.
func lines(field, place, then, now string) *Difference {
	if then == now {
		return nil
	}
	a, b := strings.Split(then, "\n"), strings.Split(now, "\n")
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	d := &Difference{Field: field, Place: place, Line: at + 1, Then: nothing, Now: nothing}
	if at < len(a) {
		d.Then = a[at]
	}
	if at < len(b) {
		d.Now = b[at]
	}
	return d
}

// compareTools compares the tools that are offered. One that is only in one of the lists comes before those that differ.
func compareTools(then, now []any) *Difference {
	a, b := names(then), names(now)
	for i, name := range a {
		if !slices.Contains(b, name) {
			return &Difference{Field: fieldTools, Place: name, Then: short(then[i]), Now: nothing}
		}
	}
	for i, name := range b {
		if !slices.Contains(a, name) {
			return &Difference{Field: fieldTools, Place: name, Then: nothing, Now: short(now[i])}
		}
	}
	if d := lines(fieldTools, "order", strings.Join(a, "\n"), strings.Join(b, "\n")); d != nil {
		return d
	}
	for i := range then {
		if d := parts(fieldTools, a[i], then[i], now[i]); d != nil {
			return d
		}
	}
	return nil
}

// names returns the names of tools.
func names(list []any) (all []string) {
	for i, t := range list {
		tool, _ := t.(map[string]any)
		if inner, is := tool["function"].(map[string]any); is {
			tool = inner
		}
		name, _ := tool["name"].(string)
		all = append(all, cmp.Or(name, fmt.Sprint(i+1)))
	}
	return all
}

// short returns the first line of what a tool says about itself.
func short(tool any) string {
	t, _ := tool.(map[string]any)
	if inner, is := t["function"].(map[string]any); is {
		t = inner
	}
	text, _ := t["description"].(string)
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// parts compares two values part by part, so that the place says in which one they differ.
func parts(field, place string, then, now any) *Difference {
	a, isObject := then.(map[string]any)
	b, alsoObject := now.(map[string]any)
	if isObject && alsoObject {
		keys := slices.Sorted(maps.Keys(a))
		for key := range b {
			if _, has := a[key]; !has {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			if d := parts(field, place+" "+key, a[key], b[key]); d != nil {
				return d
			}
		}
		return nil
	}
	x, isList := then.([]any)
	y, alsoList := now.([]any)
	if isList && alsoList {
		for i := range max(len(x), len(y)) {
			var p, q any
			if i < len(x) {
				p = x[i]
			}
			if i < len(y) {
				q = y[i]
			}
			if d := parts(field, fmt.Sprintf("%s %d", place, i+1), p, q); d != nil {
				return d
			}
		}
		return nil
	}
	return values(field, place, then, now)
}

// compareMessages compares two conversations.
func compareMessages(then, now []any) *Difference {
	for i := range max(len(then), len(now)) {
		place := fmt.Sprintf("message %d", i+1)
		switch {
		case i >= len(then):
			return &Difference{Field: fieldMessages, Place: place, Then: nothing, Now: plain(now[i])}
		case i >= len(now):
			return &Difference{Field: fieldMessages, Place: place, Then: plain(then[i]), Now: nothing}
		}
		if d := parts(fieldMessages, place, then[i], now[i]); d != nil {
			return d
		}
	}
	return nil
}
