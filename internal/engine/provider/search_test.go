package provider

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

var query = SearchRequest{Query: "weather in Paris", Allowed: []string{"example.com"}, Model: "m", Most: 3, MaxTokens: 100}

func TestSearchAnthropic(t *testing.T) {
	api := anthropicapi.New(t)
	api.Reply(anthropicapi.Reply{
		Found: []anthropicapi.Page{{Title: "Paris", URL: "https://example.com/p", Age: "2 days ago"}, {Title: "Twice", URL: "https://example.com/p"}},
		Text:  "Rain.", Usage: anthropicapi.Usage{In: 9000, Out: 20},
	}, anthropicapi.Reply{SearchFail: "max_uses_exceeded"}, anthropicapi.Reply{Status: 529})
	s := NewAnthropic(Options{BaseURL: api.URL(), Key: "k"})
	found, err := s.Search(t.Context(), query)
	want := Found{Text: "Rain.", Pages: []page{{"Paris", "https://example.com/p", "2 days ago"}}, Searches: 1, Usage: runlog.Usage{In: 9000, Out: 20}}
	if err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("got %+v, %v", found, err)
	}
	q := api.Requests()[0]
	if tool := q.Tools[0]; !q.IsSearch() || tool.MaxUses != 3 || tool.Allowed[0] != "example.com" || !strings.Contains(q.LastUserText(), "weather in Paris") {
		t.Errorf("asked %s", q.Raw)
	}
	if found, err := s.Search(t.Context(), query); !errors.Is(err, ErrRejected) || !strings.Contains(err.Error(), "max_uses_exceeded") || found.Usage.In == 0 {
		t.Errorf("got %+v, %v", found, err)
	}
	if _, err := s.Search(t.Context(), query); err == nil {
		t.Error("an overload is no error")
	}
}

func TestSearchOpenAI(t *testing.T) {
	api := openaiapi.New(t)
	api.Reply(openaiapi.Reply{
		Found: []openaiapi.Page{{URL: "https://example.com/other"}, {Title: "Paris", URL: "https://example.com/p"}},
		Text:  "Rain.", Usage: openaiapi.Usage{In: 9000, Out: 20, Cached: 1000},
	}, openaiapi.Reply{Status: 400, Message: "Hosted tool 'web_search' is not supported with this model."})
	s := NewOpenAI(Options{BaseURL: api.URL(), Key: "k"})
	found, err := s.Search(t.Context(), query)
	want := Found{
		Text: "Rain.", Pages: []page{{Title: "Paris", URL: "https://example.com/p"}, {URL: "https://example.com/other"}}, Searches: 1,
		Usage: runlog.Usage{In: 8000, Out: 20, CacheRead: 1000},
	}
	if err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("got %+v, %v", found, err)
	}
	if q := api.Requests()[0].Search; q.MaxToolCalls != 3 || q.Tools[0].Filters.Allowed[0] != "example.com" {
		t.Errorf("asked %+v", q)
	}
	if _, err := s.Search(t.Context(), query); err == nil || !strings.Contains(err.Error(), "not supported") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Search(t.Context(), SearchRequest{Query: "x", Blocked: []string{"example.com"}}); err == nil || len(api.Requests()) != 2 {
		t.Errorf("blocked domains: %v", err)
	}
}

func TestHasSearch(t *testing.T) {
	for address, want := range map[string]bool{
		"": true, "https://api.anthropic.com": true, "https://api.openai.com/v1": true, "http://localhost:11434/v1": false,
		"https://api.deepseek.com": false, "https://api.openai.com.example.org/v1": false,
	} {
		if got := (Options{BaseURL: address}).HasSearch(); got != want {
			t.Errorf("%q: %v", address, got)
		}
	}
}
