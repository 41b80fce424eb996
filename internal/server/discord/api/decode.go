package api

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Decode decodes an object of Discord's. What discordgo's types cannot read of it, such as a component of an unknown type, costs only
// itself: it is left out. An object is not read without what says what it is, where it is and whose.
func Decode[T any](data []byte) (all T, err error) {
	if err = json.Unmarshal(data, &all); err == nil {
		return all, nil
	}
	if plain, changed := withoutComponents(data); changed {
		var most T
		if err = json.Unmarshal(plain, &most); err == nil {
			return most, nil
		}
		data = plain
	}
	data, readable := withoutUnreadable[T](data)
	var rest T
	if !readable {
		return rest, err
	}
	return rest, json.Unmarshal(data, &rest)
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
