package acp

import (
	"fmt"
	"strconv"
	"strings"
)

// Untested returns why a version of the agent may do something else than its profile says; "" if it was tested.
func (e *Engine) Untested(version string) string {
	p := e.Profile
	switch {
	case p.Name == "":
		return "has no profile: ollim does not know what it asks for"
	case version == "":
		return "does not say its version"
	case older(version, p.Tested[0]):
		return "is older than " + p.Tested[0] + ", the oldest version that ollim was tested with"
	case older(p.Tested[1], version):
		return "is newer than " + p.Tested[1] + ", the newest version that ollim was tested with"
	}
	return ""
}

// older reports whether a version precedes another one, number by number.
func older(a, b string) bool {
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(left), len(right)) {
		x, y := number(left, i), number(right, i)
		if x != y {
			return x < y
		}
	}
	return false
}

func number(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	digits := strings.TrimFunc(parts[i], func(r rune) bool { return r < '0' || r > '9' })
	n, _ := strconv.Atoi(digits) // no number counts as 0
	return n
}

// NoKey returns where a key was looked for if the agent has none; "" if it has one, or if the owner gives it settings of its own.
func (e *Engine) NoKey() string {
	for _, name := range append(e.Profile.Keys, e.Profile.Reads...) {
		if variable(e.Env, name) != "" {
			return ""
		}
	}
	if len(e.Profile.Keys) == 0 {
		return ""
	}
	return fmt.Sprintf("none of %s is set; %s", strings.Join(e.Profile.Keys, ", "), e.Sought)
}
