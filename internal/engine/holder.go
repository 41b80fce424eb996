package engine

import (
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/state/transcript"
)

// Names of the engines. The form of a session id shows which engine it belongs to.
const (
	ClaudeCode = "claude-code" // UUIDs
	Script     = "script"      // s-…
	Native     = "native"      // n-…
)

// Foreign returns the error for a session of another engine. It wraps ErrForeignSession.
func Foreign(id string) error {
	holder := "another engine"
	if name := Holder(id); name != "" {
		holder = "the " + name + " engine"
	}
	return fmt.Errorf("%w: %s belongs to %s", ErrForeignSession, id, holder)
}

// HolderOf returns the engine that continues a transcript, by its header: transcripts of other software have ids of any form.
func HolderOf(h transcript.Header) string {
	switch {
	case h.Provider == ClaudeCode:
		return ClaudeCode
	case strings.HasPrefix(h.Provider, "script:"):
		return Script
	}
	return Native
}

// Holder returns the engine that a session id belongs to, by its form; "" if no engine gives such ids.
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
	x := func(r rune) rune {
		if strings.ContainsRune("0123456789abcdefABCDEF", r) {
			return 'x'
		}
		return r
	}
	return len(id) == len(form) && !strings.Contains(id, "x") && strings.Map(x, id) == form
}
