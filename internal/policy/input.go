package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	longestInput = 16 << 20 // bytes; a Write carries a whole file
	deepestInput = 32
)

// fields is a tool's input: string, json.Number, bool, nil, []any or map[string]any, by key.
type fields map[string]any

// CheckInput says what is wrong with a tool's input as such, nil if nothing is: it is no JSON object, has fields that are not
// known, given twice or of the wrong type, or lacks one.
func CheckInput(tool string, input json.RawMessage) error {
	_, err := readInput(tool, input)
	return err
}

// readInput reads the object and checks its fields. What two JSON readers could read differently is refused.
func readInput(tool string, input json.RawMessage) (fields, error) {
	in, err := readObject(input)
	if err != nil {
		return nil, err
	}
	_, known := toolOf(tool)
	for _, f := range known {
		name, typ, _ := strings.Cut(f, ":")
		typ, required := strings.CutSuffix(typ, "!")
		switch value, given := in[name]; {
		case required && !given:
			return nil, fmt.Errorf("it needs %s", name)
		case given && typ == "false" && value != false:
			return nil, fmt.Errorf("%s is not allowed", name)
		case given && typ != "false" && !strings.HasPrefix(fmt.Sprintf("%T", value), typ):
			return nil, fmt.Errorf("the field %s has the wrong type", name)
		}
	}
	for name := range in {
		if len(known) > 0 && !slices.ContainsFunc(known, func(f string) bool { return strings.HasPrefix(f, name+":") }) {
			return nil, fmt.Errorf("unknown field %s", quote(name))
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

// readObject reads exactly one JSON object, without repeated keys at any depth.
func readObject(input []byte) (fields, error) {
	switch {
	case len(input) > longestInput:
		return nil, fmt.Errorf("the input is longer than %d bytes", longestInput)
	case !utf8.Valid(input):
		return nil, errors.New("the input is not valid UTF-8")
	case !json.Valid(input):
		return nil, errors.New("the input is not one valid JSON value")
	}
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	value, err := readValue(dec, 0)
	in, ok := value.(fields)
	if err == nil && !ok {
		err = errors.New("the input is not a JSON object")
	}
	return in, err
}

// readValue reads the next value of a valid text. It refuses repeated keys, and too many values around one. The values of a list are
// left out.
func readValue(dec *json.Decoder, depth int) (any, error) {
	if depth > deepestInput {
		return nil, errors.New("the input is nested too deep")
	}
	begin, err := dec.Token()
	if _, nested := begin.(json.Delim); !nested || err != nil {
		return begin, err
	}
	in, list := fields{}, begin == json.Delim('[')
	for dec.More() {
		var key json.Token = len(in)
		if !list {
			key, _ = dec.Token()
		}
		name := fmt.Sprint(key)
		if _, again := in[name]; again {
			return nil, fmt.Errorf("the field %s is given twice", quote(name))
		}
		if in[name], err = readValue(dec, depth+1); err != nil {
			return nil, err
		}
	}
	if _, err = dec.Token(); list {
		return []any{}, err
	}
	return in, err
}
