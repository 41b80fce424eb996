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
	if len(known) == 0 {
		return in, nil
	}
	var names []string
	for _, f := range known {
		name, typ, _ := strings.Cut(f, ":")
		typ, required := strings.CutSuffix(typ, "!")
		value, given := in[name]
		switch names = append(names, name); {
		case required && !given:
			return nil, fmt.Errorf("it needs %s", name)
		case given && typeOf(value) != typ:
			return nil, fmt.Errorf("the field %s has the wrong type", name)
		}
	}
	for name := range in {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("unknown field %s", quote(name))
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
func readObject(input []byte) (in fields, err error) {
	switch {
	case len(input) > longestInput:
		return nil, fmt.Errorf("the input is longer than %d bytes", longestInput)
	case !utf8.Valid(input):
		return nil, errors.New("the input is not valid UTF-8")
	case !json.Valid(input):
		return nil, errors.New("the input is not one valid JSON value")
	}
	if err := checkKeys(json.NewDecoder(bytes.NewReader(input)), 0); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	if dec.Decode(&in) != nil || in == nil {
		return nil, errors.New("the input is not a JSON object")
	}
	return in, nil
}

// checkKeys refuses repeated keys in the next value of a valid text, and too many values around one.
func checkKeys(dec *json.Decoder, depth int) error {
	if depth > deepestInput {
		return errors.New("the input is nested too deep")
	}
	begin, err := dec.Token()
	if _, nested := begin.(json.Delim); !nested || err != nil {
		return err
	}
	seen := map[json.Token]bool{}
	for dec.More() {
		if begin == json.Delim('{') {
			key, _ := dec.Token()
			if seen[key] {
				return fmt.Errorf("the field %s is given twice", quote(fmt.Sprint(key)))
			}
			seen[key] = true
		}
		if err := checkKeys(dec, depth+1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}
