package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/media"
)

// explain returns an error that the agent has reported in the terms of engines, and other errors as they are. Agents pass the words of
// their services on.
func (e *Engine) explain(err error, stderr string) error {
	refused := (*rpcError)(nil)
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Code == authRequired:
		return fmt.Errorf("%w: %s: %s", engine.ErrNoKey, firstLine(err.Error()), e.Sought)
	}
	text := err.Error()
	if line := lastLine(stderr); kindOf(text) == "" && kindOf(line) != "" {
		text += ": " + line
	}
	return e.as(kindOf(text), text)
}

func (e *Engine) as(kind, text string) error {
	text = firstLine(text)
	switch kind {
	case "key":
		return fmt.Errorf("%w: %s", engine.ErrKey, text)
	case "model":
		return fmt.Errorf("%w: %s", engine.ErrModel, text)
	case "busy":
		return &engine.Overloaded{Reason: text}
	case "":
		return errors.New(text)
	}
	return fmt.Errorf("%w: %s", engine.ErrUnavailable, text)
}

// kindOf returns what words of a service mean: key, model, busy, unreachable; "" if they mean something else.
func kindOf(text string) string {
	for _, c := range []struct{ kind, words string }{
		{"key", `(?i)\b40[13]\b|invalid.{0,3}(x-)?api.?key|incorrect api key|api key not valid|unauthorized|authentication|missing.{0,20}api key|api key is missing|credit balance|billing`},
		{"model", `(?i)model.{0,40}(not found|does not exist|not exist|not supported)|unknown model|model_not_found|no such model`},
		{"busy", `(?i)\b(429|529|503)\b|overloaded|rate.?limit|too many requests|resource.?exhausted`},
		{"unreachable", `(?i)ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|fetch failed|unable to connect|connection (refused|error|reset)|cannot connect|stream disconnected|error sending request|network error|\b50[0-24]\b|internal server error|bad gateway|service unavailable|high demand`},
	} {
		if regexp.MustCompile(c.words).MatchString(text) {
			return c.kind
		}
	}
	return ""
}

// firstLine returns the first line of a text, or the message in one that is the JSON of a service's error.
func firstLine(s string) string {
	var said struct{ Error struct{ Message string } }
	if json.Unmarshal([]byte(s), &said) == nil && said.Error.Message != "" {
		s = said.Error.Message
	}
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimRight(line, ". ")
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:])
}

// bare returns the name of a model without its provider, as in anthropic/claude-opus-4-8.
func bare(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// limits are those of images that every service takes.
func limits() media.Limits { return media.Anthropic(200_000) }
