package payload

import (
	"fmt"
	"strings"
)

// split returns the keys and indexes of a JSON pointer, none for "", which is the whole payload.
func split(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	parts := strings.Split(pointer, "/")
	if parts[0] != "" {
		return nil, fmt.Errorf("%q: want a JSON pointer, such as /workflow_run/head_branch", pointer)
	}
	for i, part := range parts {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(part), "~") {
			return nil, fmt.Errorf("%q: in a JSON pointer ~ is written as ~0", pointer)
		}
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts[1:], nil
}

// CheckPointer returns an error if a text is not a JSON pointer to a part of a payload.
func CheckPointer(pointer string) error {
	path, err := split(pointer)
	if err == nil && len(path) == 0 {
		err = fmt.Errorf("%q: want a JSON pointer, such as /id", pointer)
	}
	return err
}

// At returns the value at a JSON pointer in a payload: map[string]any, []any, string, json.Number, bool or nil. It reports false if
// there is none. The error is an *invalid.
func At(payload []byte, pointer string) (value any, found bool, err error) {
	path, err := split(pointer)
	if err != nil {
		return nil, false, err
	}
	const name = "value"
	var f Fields
	f.paths.add(path, name)
	f.list = true
	all, err := pick(&f, payload)
	value, found = all[name]
	return value, found, err
}
