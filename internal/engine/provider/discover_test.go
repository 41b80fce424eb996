package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

// TestDiscover: a service says by its errors which API it has, and by its list which models; else the form of the address decides.
func TestDiscover(t *testing.T) {
	t.Parallel()
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization")+r.Header.Get("X-Api-Key") != "" {
			t.Error("a key was sent")
		}
		if r.URL.Path == "/v1/models" {
			_, _ = fmt.Fprint(w, `{"object": "list", "data": [{"id": "small"}, {"id": "large"}]}`)
			return
		}
		http.Redirect(w, r, "/v1/models", http.StatusFound) // which is not followed
	}))
	defer local.Close()
	anthropic, openai := anthropicapi.New(t).URL(), openaiapi.New(t).URL()
	for address, want := range map[string]string{
		anthropic: config.Anthropic, anthropic + "/": config.Anthropic, openai: config.OpenAI,
		local.URL + "/v1": config.OpenAI + " small large", local.URL: config.Anthropic + " small large",
		"http://127.0.0.1:1/v1": config.OpenAI, "http://127.0.0.1:1": config.Anthropic,
	} {
		api, models := provider.Discover(t.Context(), address)
		if got := strings.Join(append([]string{api}, models...), " "); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
