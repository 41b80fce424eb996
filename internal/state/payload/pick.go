package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// branch is a position in payloads, with the fields at and below it.
type branch struct {
	names []string
	next  map[string]*branch // by key, or by decimal index
}

// add registers a field at its position.
func (b *branch) add(path []string, name string) {
	for _, part := range path {
		if b.next == nil {
			b.next = map[string]*branch{}
		}
		if b.next[part] == nil {
			b.next[part] = &branch{}
		}
		b = b.next[part]
	}
	b.names = append(b.names, name)
}

// picker reads a payload once from beginning to end, and keeps only the values of fields in memory.
type picker struct {
	decoder *json.Decoder
	closed  bool
	found   map[string]any
	left    int      // how many more values are allowed
	path    []string // position that is being read
}

// pick returns the values of the fields by their names: map[string]any, []any, string, json.Number, bool or nil.
func pick(f *Fields, payload []byte) (map[string]any, error) {
	if err := wellFormed(payload, f.list); err != nil {
		return nil, err
	}
	p := picker{decoder: json.NewDecoder(bytes.NewReader(payload)), closed: f.closed, found: map[string]any{}, left: maxValues}
	p.decoder.UseNumber()
	return p.found, p.walk(&f.paths)
}

// skipped stands for a JSON value that is not kept.
type skipped struct{}

func (*skipped) UnmarshalJSON([]byte) error { return nil }

// wellFormed returns an error if a payload is not one JSON object or, if that is allowed, one list.
func wellFormed(payload []byte, list bool) error {
	if at := invalidUTF8(payload); at >= 0 {
		return &invalid{fmt.Sprintf("byte %d", at), "not valid UTF-8"}
	}
	if !json.Valid(payload) {
		err := json.Unmarshal(payload, &skipped{})
		var syntax *json.SyntaxError
		errors.As(err, &syntax)
		return &invalid{fmt.Sprintf("byte %d", syntax.Offset), "not JSON: " + syntax.Error()}
	}
	switch first := bytes.TrimLeft(payload, " \t\r\n")[0]; {
	case first == '{' || first == '[' && list:
		return nil
	case first == '[':
		return &invalid{"", "is a list, not a JSON object: select its items with from: /0/NAME, or all of it with from: \"\""}
	}
	return &invalid{"", "not a JSON object"}
}

func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

func (p *picker) wrong(format string, args ...any) error {
	var location strings.Builder
	for _, part := range p.path {
		location.WriteString(escape(part))
	}
	return &invalid{location.String(), fmt.Sprintf(format, args...)}
}

// within reads a value one level deeper.
func (p *picker) within(part string, read func() error) error {
	p.path = append(p.path, part)
	err := read()
	p.path = p.path[:len(p.path)-1]
	return err
}

// walk reads the value at a branch.
func (p *picker) walk(b *branch) error {
	if len(b.names) > 0 {
		value, err := p.value()
		if err == nil {
			p.keep(b, value)
		}
		return err
	}
	token, err := p.decoder.Token()
	if err != nil {
		return p.wrong("%v", err)
	}
	switch token {
	case json.Delim('{'):
		return p.walkObject(b)
	case json.Delim('['):
		return p.walkList(b)
	}
	return nil
}

func (p *picker) walkObject(b *branch) error {
	seen := map[string]bool{}
	return p.entries(func(key string) error {
		next := b.next[key]
		switch {
		case next == nil && p.closed && len(p.path) == 1:
			return p.wrong("is not one of the fields, and additionalProperties is false")
		case next == nil:
			return p.decoder.Decode(&skipped{})
		case seen[key]:
			return p.wrong("given twice")
		}
		seen[key] = true
		return p.walk(next)
	})
}

func (p *picker) walkList(b *branch) error {
	return p.items(func(i int) error {
		if next := b.next[strconv.Itoa(i)]; next != nil {
			return p.walk(next)
		}
		return p.decoder.Decode(&skipped{})
	})
}

// entries reads the rest of an object.
func (p *picker) entries(read func(key string) error) error {
	for p.decoder.More() {
		token, err := p.decoder.Token()
		if err != nil {
			return p.wrong("%v", err)
		}
		key, _ := token.(string) // keys of a JSON object are strings
		if err := p.within(key, func() error { return read(key) }); err != nil {
			return err
		}
	}
	_, err := p.decoder.Token()
	return err
}

// items reads the rest of a list.
func (p *picker) items(read func(i int) error) error {
	for i := 0; p.decoder.More(); i++ {
		if err := p.within(strconv.Itoa(i), func() error { return read(i) }); err != nil {
			return err
		}
	}
	_, err := p.decoder.Token()
	return err
}

// keep stores a value for the fields at a branch and below it.
func (p *picker) keep(b *branch, value any) {
	for _, name := range b.names {
		p.found[name] = value
	}
	for part, next := range b.next {
		switch v := value.(type) {
		case map[string]any:
			if below, has := v[part]; has {
				p.keep(next, below)
			}
		case []any:
			if i, err := strconv.Atoi(part); isIndex(part) && err == nil && i < len(v) {
				p.keep(next, v[i])
			}
		}
	}
}

// isIndex reports whether a segment of a pointer may be the index of an item.
func isIndex(part string) bool {
	i, err := strconv.Atoi(part)
	return err == nil && i >= 0 && strconv.Itoa(i) == part
}

// value reads one whole value.
func (p *picker) value() (any, error) {
	if p.left--; p.left < 0 {
		return nil, p.wrong("the fields select more than %d values", maxValues)
	}
	if len(p.path) > maxDepth {
		return nil, p.wrong("more than %d levels deep", maxDepth)
	}
	token, err := p.decoder.Token()
	if err != nil {
		return nil, p.wrong("%v", err)
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return p.object()
		}
		return p.list()
	case json.Number:
		return t, p.number(t)
	}
	return token, nil
}

// number returns an error for a number to which the schema cannot be applied.
func (p *picker) number(n json.Number) error {
	if len(n) > maxDigits {
		return p.wrong("a number of %d characters, more than %d", len(n), maxDigits)
	}
	if _, err := n.Float64(); err != nil {
		return p.wrong("the number is out of range")
	}
	return nil
}

func (p *picker) object() (any, error) {
	m := map[string]any{}
	return m, p.entries(func(key string) error {
		if _, twice := m[key]; twice {
			return p.wrong("given twice")
		}
		value, err := p.value()
		m[key] = value
		return err
	})
}

func (p *picker) list() (any, error) {
	list := []any{}
	err := p.items(func(int) error {
		value, err := p.value()
		list = append(list, value)
		return err
	})
	return list, err
}
