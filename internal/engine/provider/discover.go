package provider

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine/gateway"
	"github.com/ollim/ollim/internal/state/config"
)

// discoverLimit bounds one request of Discover.
const discoverLimit = 3 * time.Second

// Discover asks the service at an address, without a key, which API it has: config.Anthropic or config.OpenAI. Where it does not say, the
// form of the address decides. models are those that it lists without a key.
func Discover(ctx context.Context, address string) (api string, models []string) {
	address = strings.TrimRight(address, "/")
	refused := inquire(ctx, http.MethodPost, address+"/v1/messages", "{}") // Anthropic's API refuses an empty request in its own form
	if refused.Type == "error" || !strings.HasSuffix(address, "/v1") && refused.Type == "" {
		api, address = config.Anthropic, address+"/v1"
	} else {
		api = config.OpenAI
	}
	for _, m := range inquire(ctx, http.MethodGet, address+"/models", "").Data {
		models = append(models, m.ID)
	}
	return api, models
}

// profile is what a service says of itself.
type profile struct {
	Type string
	Data []struct{ ID string }
}

// inquire sends a request without a key. What is no JSON says nothing.
func inquire(ctx context.Context, method, url, body string) (p profile) {
	ctx, cancel := context.WithTimeout(ctx, discoverLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return p
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	client := http.Client{CheckRedirect: gateway.NeverFollow}
	resp, err := client.Do(req)
	if err != nil {
		return p
	}
	defer func() { _ = resp.Body.Close() }()
	if data, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)); err != nil || json.Unmarshal(data, &p) != nil {
		return profile{}
	}
	return p
}
