package provider

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine/gateway"
)

// Options say where a service is and how to reach it.
type Options struct {
	BaseURL string       // "" is the vendor's own. Anthropic's kind has no /v1 at its end, OpenAI's kind has one
	Key     string       // "" sends none: local servers want none
	KeyName string       // what the owner calls the key, and where it is kept, for errors
	Client  *http.Client // nil: one with Go's defaults. Its timeout should be none; redirects are never followed
	// Idle is the longest wait for the next byte, from the request on; then the answer counts as cut off. 0 is gateway.Idle.
	Idle time.Duration

	limit int64 // bytes of an answer on the wire; 0 is gateway.MaxAnswer
}

func (o Options) withDefaults(url string) Options {
	o.BaseURL = strings.TrimRight(cmp.Or(strings.TrimSpace(o.BaseURL), url), "/")
	o.Key = strings.TrimSpace(o.Key)
	o.Idle = cmp.Or(o.Idle, gateway.Idle)
	o.limit = cmp.Or(o.limit, gateway.MaxAnswer)
	if o.Client == nil {
		o.Client = &http.Client{}
	}
	return o
}
