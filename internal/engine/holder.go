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
	ACP        = "acp"         // a-NAME-…, of the engine acp:NAME
)

// ACPPrefix begins the ids of the sessions of agents that speak ACP. The name of the agent and 12 digits follow.
const ACPPrefix = "a-"

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
	case strings.HasPrefix(h.Provider, ACP+":"):
		return h.Provider
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
	case strings.HasPrefix(id, ACPPrefix):
		name, number := strings.TrimPrefix(id, ACPPrefix), ""
		if at := strings.LastIndexByte(name, '-'); at > 0 {
			name, number = name[:at], name[at+1:]
		}
		if len(number) == len("0123456789ab") && strings.Trim(number, "0123456789abcdef") == "" {
			return ACP + ":" + name
		}
	}
	return ""
}

// Kind returns the part of an engine's name that its sessions depend on: script for script:FILE, and otherwise the name, as for acp:NAME.
func Kind(name string) string {
	if kind, _, found := strings.Cut(name, ":"); found && kind == Script {
		return kind
	}
	return name
}

// Inside reports whether the engine of a name is a command with tools of its own, which the seal holds together with the command.
func Inside(name string) bool { return name == ClaudeCode || strings.HasPrefix(name, ACP+":") }

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
