package engine

import (
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/state/transcript"
)

// Names of engines whose sessions can be told by their ids.
const (
	ClaudeCode = "claude-code" // UUIDs
	Script     = "script"      // s-…
	Native     = "native"      // n-…
)

// Foreign is the error of an engine that is given another one's session. It wraps ErrForeignSession.
func Foreign(id string) error {
	holder := "another engine"
	if name := Holder(id); name != "" {
		holder = "the " + name + " engine"
	}
	return fmt.Errorf("%w: %s belongs to %s", ErrForeignSession, id, holder)
}

// HolderOf is the engine that goes on with a transcript. Its header says so: other software gives ids of any form.
func HolderOf(h transcript.Header) string {
	switch {
	case h.Provider == ClaudeCode:
		return ClaudeCode
	case strings.HasPrefix(h.Provider, "script:"):
		return Script
	}
	return Native
}

// Holder is the engine that a session id belongs to, by its form; "" when it has none of ours.
func Holder(id string) string {
	switch {
	case isUUID(id):
		return ClaudeCode
	case strings.HasPrefix(id, "s-"):
		return Script
	case strings.HasPrefix(id, "n-"):
		return Native
	}
	return ""
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
