package provider

import (
	"fmt"
	"strconv"
	"strings"
)

type wireThinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

const (
	minBudget  = 1024 // tokens, the service's limit
	someBudget = 8192 // for models that cannot choose by themselves
	room       = 8192 // tokens that an answer is left at least, besides its thoughts
)

// thinkingOf is what to tell the Messages API, and how long the answer may be with it. The models of Claude differ: from 4.6
// on they choose how much to think, up to 4.6 they can be given a budget, and before 3.7 they do not think.
func thinkingOf(model, wish string, maxTokens int) (*wireThinking, int, error) {
	var budget int
	switch wish {
	case "":
		return nil, maxTokens, nil
	case "off", "false":
		return &wireThinking{Type: "disabled"}, maxTokens, nil
	case "adaptive", "true":
		if !before(model, 4, 6) {
			return &wireThinking{Type: "adaptive"}, maxTokens, nil
		}
		budget = min(someBudget, max(minBudget, maxTokens/2))
	default:
		n, err := strconv.Atoi(wish)
		switch {
		case err != nil || n < 0:
			return nil, 0, fmt.Errorf("thinking: %q is neither off nor adaptive nor a number of tokens", wish)
		case n == 0:
			return &wireThinking{Type: "disabled"}, maxTokens, nil
		case strings.Contains(model, "claude") && !before(model, 4, 7):
			return &wireThinking{Type: "adaptive"}, maxTokens, nil
		}
		budget = max(n, minBudget)
	}
	if before(model, 3, 7) {
		return nil, maxTokens, nil
	}
	if maxTokens <= budget {
		maxTokens = budget + min(maxTokens, room)
	}
	return &wireThinking{Type: "enabled", Budget: budget}, maxTokens, nil
}

// before says whether a model of Claude is older than a version: claude-opus-4-8, claude-3-7-sonnet-20250219,
// claude-sonnet-4-20250514. Names without a version are of newer models or of none that is known.
func before(model string, major, minor int) bool {
	if !strings.Contains(model, "claude") {
		return false
	}
	var version []int
	for _, field := range strings.FieldsFunc(model, func(r rune) bool { return r == '-' || r == '.' || r == '/' || r == '@' }) {
		n, err := strconv.Atoi(field)
		if err == nil && len(field) <= 2 && len(version) < 2 {
			version = append(version, n)
		} else if len(version) > 0 {
			break
		}
	}
	if len(version) == 0 {
		return false
	}
	version = append(version, 0)
	return version[0] < major || version[0] == major && version[1] < minor
}
