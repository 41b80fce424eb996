package api

import (
	"bytes"
	"encoding/json"
)

// Decode decodes an object of Discord's. One that does not fit T is decoded again without its message components: discordgo's types
// refuse a message with a component of an unknown type. If the error is nil, at most the components are missing.
func Decode[T any](data []byte) (T, error) {
	var all, rest T
	err := json.Unmarshal(data, &all)
	if err == nil {
		return all, nil
	}
	data, changed := withoutComponents(data)
	if !changed {
		return rest, err
	}
	return rest, json.Unmarshal(data, &rest)
}

// withoutComponents returns JSON without the key components at any depth. It reports whether there was one.
func withoutComponents(data []byte) ([]byte, bool) {
	var v any
	numbers := json.NewDecoder(bytes.NewReader(data))
	numbers.UseNumber() // a nonce may be a number of 64 bits
	if numbers.Decode(&v) != nil || !removeComponents(v) {
		return nil, false
	}
	data, err := json.Marshal(v)
	return data, err == nil
}

func removeComponents(v any) (removed bool) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			removed = removeComponents(item) || removed
		}
	case map[string]any:
		if _, removed = v["components"]; removed {
			delete(v, "components")
		}
		for _, item := range v {
			removed = removeComponents(item) || removed
		}
	}
	return removed
}
