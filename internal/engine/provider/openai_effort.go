package provider

import (
	"slices"
	"strconv"
	"strings"
)

// effort is how much to think in OpenAI's words, or "" to leave it to the service: many models refuse a request that speaks of
// it, so it is said only where it is known to be taken.
func effort(r Request, host string) string {
	v, known := versionOf(r.Model)
	if known && len(r.Tools) > 0 && strings.HasPrefix(r.Model, "gpt-") && !v.before(5, 2) {
		// With chat completions these models either think or use tools, wherever they run. Before 5.5 they do not think by default.
		if !v.before(5, 5) && takesNone(r.Model) {
			return "none"
		}
		return ""
	}
	how := level(r.Thinking)
	switch {
	case under(host, "openrouter.ai") && how != "none":
		return how // it puts it into what each model takes; but where a model must think it refuses none
	case !under(host, "api.openai.com"), !takesEffort(r.Model), how == "none" && !takesNone(r.Model):
		return ""
	}
	return how
}

// level is a wish in OpenAI's words. Where one ends and the next begins is our choice: the services give no numbers.
func level(wish string) string {
	if wish == "off" || wish == "false" {
		return "none"
	}
	switch n, err := strconv.Atoi(wish); {
	case err != nil:
		return ""
	case n <= 0:
		return "none"
	case n < 4096:
		return "low"
	case n < 16384:
		return "medium"
	}
	return "high"
}

// takesEffort knows the models of OpenAI that take low, medium and high.
func takesEffort(model string) bool {
	others := []string{"-chat", "-pro", "-search", "o1-mini", "o1-preview"}
	if slices.ContainsFunc(others, func(other string) bool { return strings.Contains(model, other) }) {
		return false
	}
	if series, _, _ := strings.Cut(model, "-"); series == "o1" || series == "o3" || series == "o4" {
		return true
	}
	v, ok := versionOf(model)
	return ok && strings.HasPrefix(model, "gpt-") && !v.before(5, 0)
}

// takesNone knows those that can do without thinking: from 5.1 up to 6, but no codex and no astra.
func takesNone(model string) bool {
	v, ok := versionOf(model)
	return ok && takesEffort(model) && strings.HasPrefix(model, "gpt-") && !v.before(5, 1) && v.before(6, 1) &&
		!strings.Contains(model, "-codex") && !strings.Contains(model, "-astra")
}

// under reports whether a host is a domain's.
func under(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}
