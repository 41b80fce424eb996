package api

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Decode decodes an object of Discord's. What discordgo's types cannot read of it, such as a component of an unknown type, costs only
// itself: it is left out. An object is not read without what says what it is, where it is and whose.
func Decode[T any](data []byte) (T, error) {
	var all, rest T
	err := json.Unmarshal(data, &all)
	if err == nil {
		return all, nil
	}
	if data, readable := withoutUnreadable[T](withoutComponents(data)); readable {
		err = json.Unmarshal(data, &rest)
	}
	return rest, err
}

// withoutUnreadable returns an object without the keys that T cannot read. It reports whether the others say enough.
func withoutUnreadable[T any](data []byte) (rest []byte, enough bool) {
	var parts map[string]json.RawMessage
	if json.Unmarshal(data, &parts) != nil {
		return nil, false
	}
	for key, value := range parts {
		var one T
		alone, err := json.Marshal(map[string]json.RawMessage{key: value})
		if err == nil && json.Unmarshal(alone, &one) == nil {
			continue
		}
		if slices.Contains([]string{"id", "type", "channel_id", "guild_id", "author", "webhook_id", "user", "member"}, key) {
			return nil, false
		}
		delete(parts, key)
	}
	rest, err := json.Marshal(parts)
	return rest, err == nil
}

// withoutComponents returns JSON without the key components at any depth.
func withoutComponents(data []byte) []byte {
	var v any
	numbers := json.NewDecoder(bytes.NewReader(data))
	numbers.UseNumber() // a nonce may be a number of 64 bits
	if numbers.Decode(&v) != nil {
		return data
	}
	removeComponents(v)
	if plain, err := json.Marshal(v); err == nil {
		return plain
	}
	return data
}

func removeComponents(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			removeComponents(item)
		}
	case map[string]any:
		delete(v, "components")
		for _, item := range v {
			removeComponents(item)
		}
	}
}
