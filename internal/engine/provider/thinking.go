package provider

import (
	"fmt"
	"strconv"
	"strings"
)

type wireThinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`

	Display string `json:"display,omitempty"`
}

const (
	minBudget  = 1024 // tokens, the service's limit
	someBudget = 8192 // for models that cannot choose by themselves
	// answerTokens are left for the answer besides its thoughts, unless its limit is lower.
	answerTokens = 8192
)

// thinkingOf is what to tell the Messages API, and how long the answer may be with it. The models of Claude differ: from 4.6
// on they choose how much to think, up to 4.6 they can be given a budget, and before 3.7 they do not think. The limit is raised
// for a budget, which counts against it, as far as most (0: not known) allows; beyond that the budget is reduced.
func thinkingOf(model, wish string, maxTokens, most int) (*wireThinking, int, error) {
	budget, answer := 0, answerTokens
	switch wish {
	case "":
		return nil, maxTokens, nil
	case "off", "false":
		return leastThinking(model), maxTokens, nil
	case "adaptive", "true":
		if !before(model, 4, 6) {
			return adaptive(model), maxTokens, nil
		}
		budget = min(someBudget, max(minBudget, maxTokens/2))
		answer = budget
	default:
		n, err := strconv.Atoi(wish)
		switch {
		case err != nil || n < 0:
			return nil, 0, fmt.Errorf("thinking: %q is not off, adaptive or a number of tokens", wish)
		case n == 0:
			return leastThinking(model), maxTokens, nil
		case strings.Contains(model, "claude") && !before(model, 4, 7):
			return adaptive(model), maxTokens, nil
		}
		budget = max(n, minBudget)
	}
	if before(model, 3, 7) {
		return nil, maxTokens, nil
	}
	maxTokens = max(maxTokens, budget+min(maxTokens, answer))
	if most > 0 && maxTokens > most {
		maxTokens = most
		budget = min(budget, max(minBudget, most-min(answerTokens, most/2)))
	}
	if maxTokens <= budget {
		return nil, maxTokens, nil // not even the smallest budget fits
	}
	return &wireThinking{Type: "enabled", Budget: budget}, maxTokens, nil
}

// adaptive lets the model choose. From Claude 4.7 on what was thought is omitted of an answer unless one asks for it.
func adaptive(model string) *wireThinking {
	if strings.Contains(model, "claude") && !before(model, 4, 7) {
		return &wireThinking{Type: "adaptive", Display: "summarized"}
	}
	return &wireThinking{Type: "adaptive"}
}

// leastThinking turns thinking off as far as the model is known to let it. A model that must think refuses the whole request
// if it is told not to, so nothing is said to those, nor to models that are not known.
func leastThinking(model string) *wireThinking {
	v, ok := versionOf(model)
	switch has := func(name string) bool { return strings.Contains(model, name) }; {
	case !ok || !has("claude") || has("fable") || has("mythos") || v.before(3, 7):
		return nil
	case v == version{5, 5} && has("sonnet"):
		return &wireThinking{Type: "between_tools"} // no thoughts but notes between calls; no other model takes it
	case v.before(5, 5), v == version{5, 5} && has("haiku"):
		return &wireThinking{Type: "disabled"}
	}
	return nil
}

// KeepsThoughts reports whether a model reads the thoughts of earlier turns, so that a conversation without them is another one to
// the cache of the service. Those of Claude do from Opus 4.5 and 4.6 on; older ones leave them out by themselves.
func KeepsThoughts(model string) bool {
	return strings.Contains(model, "claude") && (!before(model, 4, 6) || strings.Contains(model, "opus") && !before(model, 4, 5))
}

// before reports whether a model of Claude is older than a version. Names without a version are of newer models or of none that
// is known.
func before(model string, major, minor int) bool {
	v, ok := versionOf(model)
	return ok && strings.Contains(model, "claude") && v.before(major, minor)
}

type version struct{ major, minor int }

func (v version) before(major, minor int) bool {
	return v.major < major || v.major == major && v.minor < minor
}

// versionOf finds the version in a model's name: claude-opus-4-8, claude-3-7-sonnet-20250219, anthropic/claude-sonnet-4.5,
// gpt-5-2025-08-07. ok is false if there is none.
func versionOf(model string) (v version, ok bool) {
	var numbers []int
	for _, field := range strings.FieldsFunc(model, func(r rune) bool { return strings.ContainsRune("-./@:", r) }) {
		n, err := strconv.Atoi(field)
		if err == nil && len(field) <= 2 && len(numbers) < 2 {
			numbers = append(numbers, n)
		} else if len(numbers) > 0 {
			break
		}
	}
	if len(numbers) == 0 {
		return version{}, false
	}
	numbers = append(numbers, 0)
	return version{numbers[0], numbers[1]}, true
}
