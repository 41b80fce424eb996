package config

import (
	"errors"
	"fmt"
	"net/url"
)

// Providers of the native engine.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
)

// Values of native.web-search.
const (
	searchAuto = "auto" // WebSearch is offered if the service is known to have a search tool
	searchOn   = "on"
	searchOff  = "off"
)

// CheckURL returns an error if the address of a service is invalid. The error does not quote parts that may hold a
// secret.
func CheckURL(s string) error { return checkURL(s, "http://localhost:11434/v1") }

// CheckAnthropicURL is CheckURL for a service that has Anthropic's API.
func CheckAnthropicURL(s string) error { return checkURL(s, "http://localhost:11434") }

func checkURL(s, example string) error {
	u, err := url.Parse(s)
	if err == nil && (u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		return errors.New("the address of a service must have no password and no query; a key is stored by ollim secret set")
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("%q is not the address of a service: write one like %s", s, example)
	}
	return nil
}

// Searches reports whether the tool WebSearch is offered; known reports whether the service is known to have one.
func (s Service) Searches(known func() bool) bool {
	return s.WebSearch == searchOn || s.WebSearch == searchAuto && known()
}
