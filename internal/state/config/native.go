package config

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// Providers of the native engine.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
)

// Values of native.web-search.
const (
	SearchAuto = "auto" // with the services that are known to have a search tool
	searchOn   = "on"
	SearchOff  = "off"
)

// native returns the keys of the native engine's service.
func native() []key {
	return []key{
		{
			name: "native.provider", example: "provider: anthropic",
			about: "API of the service: anthropic, or openai, which many other services and local servers support. The key is the line\n" +
				"engine.ANTHROPIC_API_KEY=… or engine.OPENAI_API_KEY=… in ~/.config/ollim/secrets.env.",
			standard: Anthropic,
			check: func(s string) error {
				if s != Anthropic && s != OpenAI {
					return fmt.Errorf("unknown provider %q: write %s or %s", s, Anthropic, OpenAI)
				}
				return nil
			},
		},
		{
			name: "native.base-url", about: "Address of the service (default: the provider's own).", example: "base-url: http://localhost:11434/v1",
			check: CheckURL,
		},
		{
			name: "native.model", about: "Model: an alias or the service's own name.", example: "model: sonnet",
			standard: "sonnet",
			check:    checkModel,
		},
		{
			name: "native.max-tokens", about: "Maximum tokens of one answer; 0 means the maximum of the model.", example: "max-tokens: 0",
			standard: 0,
			check: func(s string) error {
				if n, err := strconv.ParseUint(s, 10, 31); err != nil || strconv.FormatUint(n, 10) != s { // 010 would be read as 8
					return fmt.Errorf("%q is not a number of tokens: write one like 16000", s)
				}
				return nil
			},
		},
		{
			name: "native.web-search", example: "web-search: auto",
			about: "The tool WebSearch, by the service's own search: auto offers it with api.anthropic.com and api.openai.com, on with any\n" +
				"service, off never. A search costs about 0.01 USD besides its tokens.",
			standard: SearchAuto,
			check:    oneOf(SearchAuto, searchOn, SearchOff),
		},
	}
}

// CheckURL returns an error if the address of a service is invalid. The error does not quote parts that may hold a
// secret.
func CheckURL(s string) error {
	u, err := url.Parse(s)
	if err == nil && (u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		return errors.New("the address of a service must have no password and no query; keys belong in secrets.env")
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("%q is not the address of a service: write one like http://localhost:11434/v1", s)
	}
	return nil
}

func checkModel(s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		return fmt.Errorf("%q is not the name of a model", s)
	}
	return nil
}
