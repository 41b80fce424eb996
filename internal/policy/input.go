package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	longestInput = 16 << 20 // bytes; a Write carries a whole file
	deepestInput = 32
)

// fields is a tool's input: string, json.Number, bool, nil, []any or fields, by key.
type fields map[string]any

// shape lists the fields of a tool's input with a letter for the type (s string, n number, b bool, a array); ! marks a required
// one. A tool without a shape takes any object.
func shape(tool string) string {
	const task = "description:s prompt:s! subagent_type:s model:s name:s run_in_background:b"
	return map[string]string{
		"Read":         "file_path:s! offset:n limit:n pages:s",
		"Write":        "file_path:s! content:s!",
		"Edit":         "file_path:s! old_string:s! new_string:s! replace_all:b",
		"MultiEdit":    "file_path:s! edits:a!",
		"NotebookEdit": "notebook_path:s! new_source:s! cell_id:s cell_type:s edit_mode:s",
		"Glob":         "pattern:s! path:s",
		"Grep": "pattern:s! path:s glob:s type:s output_mode:s -A:n -B:n -C:n context:n -n:b -i:b -o:b head_limit:n offset:n " +
			"multiline:b",
		"Bash":      "command:s! description:s timeout:n run_in_background:b dangerouslyDisableSandbox:b",
		"WebFetch":  "url:s! prompt:s",
		"WebSearch": "query:s! allowed_domains:a blocked_domains:a",
		"Task":      task,
		"Agent":     task,
		"Skill":     "skill:s command:s args:s",
	}[tool]
}

// readInput reads the object and checks its fields. What two JSON readers could read differently is refused.
func readInput(tool string, input json.RawMessage) (fields, error) {
	in, err := readObject(input)
	if err != nil {
		return nil, err
	}
	known := strings.Fields(shape(tool))
	if len(known) == 0 {
		return in, nil
	}
	types := map[string]string{}
	for _, f := range known {
		name, typ, _ := strings.Cut(f, ":")
		typ, required := strings.CutSuffix(typ, "!")
		types[name] = typ
		if _, ok := in[name]; !ok && required {
			return nil, fmt.Errorf("it needs %s", name)
		}
	}
	for name, value := range in {
		typ, ok := types[name]
		if !ok {
			return nil, fmt.Errorf("unknown field %s", quote(name))
		}
		if typeOf(value) != typ {
			return nil, fmt.Errorf("the field %s has the wrong type", name)
		}
	}
	for _, off := range []string{"run_in_background", "dangerouslyDisableSandbox"} {
		if on, _ := in[off].(bool); on {
			return nil, fmt.Errorf("%s is not allowed", off)
		}
	}
	return in, nil
}

func (in fields) text(name string) string {
	s, _ := in[name].(string)
	return s
}

// file returns the file that a tool is to read or write.
func (in fields) file() string { return cmp.Or(in.text("file_path"), in.text("notebook_path")) }

func typeOf(value any) string {
	switch value.(type) {
	case string:
		return "s"
	case json.Number:
		return "n"
	case bool:
		return "b"
	case []any:
		return "a"
	}
	return "?"
}

// readObject reads exactly one JSON object, without repeated keys at any depth.
func readObject(input []byte) (fields, error) {
	switch {
	case len(input) > longestInput:
		return nil, fmt.Errorf("the input is longer than %d bytes", longestInput)
	case !utf8.Valid(input):
		return nil, errors.New("the input is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(input))
	var text json.RawMessage
	if dec.Decode(&text) != nil {
		return nil, errors.New("the input is not valid JSON")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the end of the input")
	}
	dec = json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	value, err := readValue(dec, 0)
	if err != nil {
		return nil, err
	}
	in, ok := value.(fields)
	if !ok {
		return nil, errors.New("the input is not a JSON object")
	}
	return in, nil
}

// readValue reads the next value of a valid text.
func readValue(dec *json.Decoder, depth int) (any, error) {
	if depth > deepestInput {
		return nil, errors.New("the input is nested too deep")
	}
	token, err := dec.Token()
	switch token {
	case json.Delim('{'):
		in := fields{}
		for dec.More() {
			key, _ := dec.Token()
			name, _ := key.(string)
			if _, twice := in[name]; twice {
				return nil, fmt.Errorf("the field %s is given twice", quote(name))
			}
			if in[name], err = readValue(dec, depth+1); err != nil {
				return nil, err
			}
		}
		_, err = dec.Token()
		return in, err
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			value, err := readValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err = dec.Token()
		return list, err
	}
	return token, err
}
