package provider

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/transcript"
)

// wires are the bodies of a request to both APIs.
func wires(t interface{ Fatal(...any) }, r Request) map[string][]byte {
	a, err := anthropicRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for name, body := range map[string]any{"anthropic": a, "openai": openaiRequest(r, "https://api.openai.com/v1")} {
		if all[name], err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// A request that is read from its body is sent as the same body again.
func TestParsedBodyIsSentAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Request{
			Model: "claude-sonnet-4-5", System: "Be brief.", MaxTokens: 16_000, Messages: conversation(t),
			Thinking: rapid.SampledFrom([]string{"", "off", "4096"}).Draw(t, "thinking"),
			Tools:    []engine.Tool{{Name: "Read", Description: "reads", Schema: json.RawMessage(`{"type":"object","x":1}`)}},
		}
		for name, body := range wires(t, r) {
			again, err := Parse(body)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, body)
			}
			again.MaxTokens = r.MaxTokens
			if name == "openai" {
				again.Thinking = r.Thinking // the body has an effort, which says less
			}
			if got := wires(t, again)[name]; string(got) != string(body) {
				t.Fatalf("%s:\n%s\nbecame\n%s", name, body, got)
			}
		}
	})
}

// Files, and the fields of other programs, are read as well.
func TestParseOfEverything(t *testing.T) {
	want := seeing()
	for name, body := range wires(t, want) {
		r, err := Parse(body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.MaxTokens, r.Cache, r.Thinking = want.MaxTokens, want.Cache, want.Thinking
		if got := wires(t, r)[name]; name == "anthropic" && string(got) != string(body) {
			t.Errorf("%s:\n%s\nbecame\n%s", name, body, got)
		}
		if files := slices.ContainsFunc(r.Messages[0].Content, func(b transcript.Block) bool { return b.Source != nil && len(b.Source.Content) > 0 }); !files {
			t.Errorf("%s: the files are lost", name)
		}
	}
	r, err := Parse([]byte(`{"model":"m","system":"one","thinking":{"type":"between_tools"},"tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"Read","input_schema":{}}],
		"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"server_tool_use","id":"1"},{"type":"text","text":"ho"}]},{"role":"user","content":[{"type":"image","source":{"type":"url"}},{"type":"text","text":"on"}]}]}`))
	if err != nil || r.System != "one" || r.Thinking != "off" || len(r.Tools) != 1 || len(r.Messages) != 3 || len(r.Messages[1].Content) != 1 || r.Messages[2].Text() != "on" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, body := range []string{"", "{}", "[]", `{"messages":[{"role":"cat","content":"x"}]}`, `{"messages":[{"role":"user","content":7}]}`, `{"messages":[{"role":"user","content":[7]}]}`} {
		if _, err := Parse([]byte(body)); !errors.Is(err, errBody) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, body := range wires(f, everything()) {
		f.Add(body)
	}
	f.Fuzz(func(_ *testing.T, body []byte) { _, _ = Parse(body) })
}
