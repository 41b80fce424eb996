package cli

import (
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/policy"
)

// spreadTools repeats --allowed-tools for each pattern after it in a command that adds a job, because the flag of the claude command takes
// several. A word is a pattern if it cannot be anything else, or if the text of the job may still follow.
func spreadTools(args []string) []string {
	const flag = "--allowed-tools"
	at := slices.Index(args, "add")
	if at < 1 || !slices.Contains([]string{"routine", "reminder", "webhook"}, strings.TrimSuffix(args[at-1], "s")) {
		return args
	}
	out, rest := slices.Clone(args[:at+1]), args[at+1:]
	for len(rest) > 0 && rest[0] != "--" {
		word := rest[0]
		out, rest = append(out, word), rest[1:]
		if word == flag && len(rest) > 0 {
			out, rest = append(out, rest[0]), rest[1:]
		} else if !strings.HasPrefix(word, flag+"=") {
			continue
		}
		for len(rest) > 0 && arePatterns(rest[0]) && (strings.ContainsAny(rest[0], "(_") || slices.ContainsFunc(rest[1:], func(w string) bool { return !isFlag(w) })) {
			out, rest = append(out, flag+"="+rest[0]), rest[1:]
		}
	}
	return append(out, rest...)
}

// arePatterns reports whether a word is a list of patterns of tools.
func arePatterns(word string) bool {
	list := policy.List(word)
	return len(list) > 0 && !slices.ContainsFunc(list, func(p string) bool { return !policy.IsTool(p) })
}
