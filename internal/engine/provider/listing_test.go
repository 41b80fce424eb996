package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

// TestModelsAreListedByPages: all pages of Anthropic's list are read, in their order, with the key.
func TestModelsAreListedByPages(t *testing.T) {
	t.Parallel()
	s := anthropicapi.New(t)
	var ids []string
	for i := range 2345 {
		ids = append(ids, fmt.Sprintf("claude-%d", i))
	}
	s.List(ids...)
	for _, address := range []string{s.URL(), s.URL() + "/v1/"} {
		list, err := provider.Options{BaseURL: address, Key: "k"}.Models(t.Context(), config.Anthropic)
		if err != nil || len(list) != len(ids) || list[0].ID != "claude-0" || list[2344].ID != "claude-2344" {
			t.Fatalf("%s: %d models, %v", address, len(list), err)
		}
	}
	if hits := s.Hits(); len(hits) != 6 || hits[1] != "GET /v1/models?after_id=claude-999&limit=1000" {
		t.Errorf("%q", hits)
	}
	_, err := provider.Options{BaseURL: s.URL()}.Models(t.Context(), config.Anthropic)
	if !errors.Is(err, engine.ErrKey) {
		t.Errorf("without a key: %v", err)
	}
	s.List()
	if list, err := (provider.Options{BaseURL: s.URL(), Key: "k"}).Models(t.Context(), config.Anthropic); err != nil || len(list) != 0 {
		t.Errorf("an empty list: %v, %v", list, err)
	}
}

// TestListedFields: what services add to OpenAI's form of a model.
func TestListedFields(t *testing.T) {
	t.Parallel()
	type obj = map[string]any
	s := openaiapi.New(t)
	s.List("gpt-5.4",
		obj{
			"id": "x/router", "expiration_date": "2027-01-31",
			"pricing": obj{"prompt": "0.0000003", "completion": "0.0000012", "input_cache_read": "0.000000006"},
		},
		obj{"id": "x/auto", "expiration_date": nil, "pricing": obj{"prompt": "-1", "completion": "-1"}},
		obj{"id": "mistral", "aliases": []string{"mistral-latest"}, "deprecation": "2026-12-31T12:00:00Z"},
		obj{"id": "groq", "active": false}, obj{"id": "old", "deprecated": true}, obj{"id": "new", "deprecated": false, "active": true},
		obj{"id": "half", "pricing": obj{"prompt": 0.000001, "completion": "?"}},
		obj{"id": "free", "pricing": obj{"prompt": "0", "completion": 0}},
		obj{"id": ""})
	list, err := provider.Options{BaseURL: s.URL(), Key: "k"}.Models(t.Context(), config.OpenAI)
	want := []provider.Listed{
		{ID: "gpt-5.4"},
		{ID: "x/router", Retires: "2027-01-31", Price: &provider.Price{In: 0.3, Out: 1.2, CacheRead: 0.006}},
		{ID: "x/auto"},
		{ID: "mistral", Aliases: []string{"mistral-latest"}, Retires: "2026-12-31"},
		{ID: "groq", Ending: true},
		{ID: "old", Ending: true},
		{ID: "new"},
		{ID: "half"},
		{ID: "free", Price: &provider.Price{CacheRead: -1}},
	}
	if err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestOpenRouterPages: the pages that a list links to are read if they are on the same host.
func TestOpenRouterPages(t *testing.T) {
	t.Parallel()
	elsewhere := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := ""
		switch {
		case elsewhere:
			next = "http://other.example/models?offset=1"
		case r.URL.Query().Get("offset") == "":
			next = "/v1/models?offset=1"
		}
		_, _ = fmt.Fprintf(w, `{"data":[{"id":"m%s"}],"links":{"next":%q}}`, r.URL.Query().Get("offset"), next)
	}))
	defer s.Close()
	o := provider.Options{BaseURL: s.URL + "/v1", Key: "k"}
	list, err := o.Models(t.Context(), config.OpenAI)
	if err != nil || len(list) != 2 || list[0].ID != "m" || list[1].ID != "m1" {
		t.Errorf("%+v, %v", list, err)
	}
	elsewhere = true
	_, err = o.Models(t.Context(), config.OpenAI)
	if !errors.Is(err, provider.ErrGarbled) || !strings.Contains(err.Error(), "continues elsewhere") {
		t.Errorf("%v", err)
	}
}

// TestListFaults: what is no list ends with an error, within the bounds of time and size.
func TestListFaults(t *testing.T) {
	t.Parallel()
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   error
		says   string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" {
				t.Error("the redirect was followed")
			}
			http.Redirect(w, r, "/login", http.StatusFound)
		}, provider.ErrGarbled, "redirects requests"},
		"login page":  {write("<!DOCTYPE html><title>Log in</title>"), provider.ErrGarbled, "sent no list of models"},
		"no data":     {write(`{"models": []}`), provider.ErrGarbled, "sent no list of models"},
		"no end":      {write(`{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}`), provider.ErrGarbled, "has no end"},
		"endless":     {endless, provider.ErrGarbled, "more than 8388608 bytes"},
		"silent":      {silent, provider.ErrCut, "no data from"},
		"cut":         {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, provider.ErrCut, "closed the connection"},
		"no route":    {http.NotFound, provider.ErrNoList, "127.0.0.1"},
		"key refused": {status(http.StatusUnauthorized), engine.ErrKey, "the key was refused: 127.0.0.1"},
		"forbidden":   {status(http.StatusForbidden), engine.ErrKey, "the key was refused"},
		"overloaded":  {status(http.StatusServiceUnavailable), nil, "Service Unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(c.answer)
			defer s.Close()
			o := provider.Options{BaseURL: s.URL, Key: "sekret-sekret"}
			if name == "silent" {
				o.Idle = 50 * time.Millisecond
			}
			list, err := o.Models(t.Context(), config.Anthropic)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || list != nil {
				t.Errorf("%+v, %v", list, err)
			}
			if provider.Unavailable(err) == errors.Is(err, provider.ErrNoList) || strings.Contains(fmt.Sprint(err), "sekret") {
				t.Errorf("%v", err)
			}
		})
	}
	closed := provider.Options{BaseURL: "http://127.0.0.1:1", Key: "k"}
	if _, err := closed.Models(t.Context(), config.Anthropic); !errors.Is(err, provider.ErrUnreached) {
		t.Error(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := closed.Models(gone, config.OpenAI); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func write(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", code) }
}

// endless sends more and more small pages of one large list.
func endless(w http.ResponseWriter, r *http.Request) {
	after := r.URL.Query().Get("after_id")
	_, _ = fmt.Fprintf(w, `{"data":[{"id":"m"}],"has_more":true,"last_id":"%sx","padding":"%s"}`, after, strings.Repeat("p", 1<<20))
}

func TestFind(t *testing.T) {
	t.Parallel()
	list := []provider.Listed{
		{ID: "claude-sonnet-4-5-20250929"}, {ID: "claude-opus-5-5"}, {ID: "llama3.3:latest"},
		{ID: "mistral-2", Aliases: []string{"mistral"}},
		{ID: "claude-opus-4-20250514"}, {ID: "x/y"},
	}
	for name, want := range map[string]string{
		"claude-sonnet-4-5": "claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20250929": "claude-sonnet-4-5-20250929",
		"claude-opus-5-5": "claude-opus-5-5",
		"claude-opus-4-0": "claude-opus-4-20250514", "claude-opus-4-latest": "claude-opus-4-20250514", "llama3.3": "llama3.3:latest",
		"mistral": "mistral-2", "x/y:nitro": "x/y", "x/y:free": "", "claude-opus-5-5-20260101": "", "claude-opus": "", "": "",
	} {
		if got, found := provider.Find(list, name); got.ID != want || found != (want != "") {
			t.Errorf("%q: %q, %v, want %q", name, got.ID, found, want)
		}
	}
}
