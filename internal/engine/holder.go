package engine

import "strings"

// Names of engines whose sessions can be told by their ids.
const (
	ClaudeCode = "claude-code" // UUIDs
	Script     = "script"      // s-…
	Native     = "native"      // n-…
)

// Holder is the engine that a session id belongs to, by its form; "another engine" when it has none of ours.
func Holder(id string) string {
	switch {
	case isUUID(id):
		return ClaudeCode
	case strings.HasPrefix(id, "s-"):
		return Script
	case strings.HasPrefix(id, "n-"):
		return Native
	}
	return "another engine"
}

func isUUID(id string) bool {
	const form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	if len(id) != len(form) {
		return false
	}
	for i, r := range id {
		if dash := form[i] == '-'; dash != (r == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", r) {
			return false
		}
	}
	return true
}
