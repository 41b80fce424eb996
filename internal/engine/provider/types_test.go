package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit"
)

// compiler returns the path of tsc, beside which the vendors' packages are installed: $OLLIM_TEST_TSC, else where .ci/run puts
// it. Without it the test is skipped, except in CI.
func compiler(t *testing.T) string {
	t.Helper()
	return testkit.Installed(t, "TypeScript compiler", "OLLIM_TEST_TSC", "types/node_modules/.bin/tsc", "")
}

// sent returns the body that a provider sends.
func sent(t *testing.T, open func(Options) Provider, baseURL string, r Request) []byte {
	t.Helper()
	return bodyOf(t, func(o Options) error {
		o.BaseURL = baseURL
		_, err := open(o).Ask(t.Context(), r, nil)
		return err
	})
}

// searched returns the body that a provider sends for a search.
func searched(t *testing.T, open func(Options) Provider, q SearchRequest) []byte {
	t.Helper()
	return bodyOf(t, func(o Options) error {
		_, err := open(o).Search(t.Context(), q)
		return err
	})
}

func bodyOf(t *testing.T, send func(Options) error) []byte {
	t.Helper()
	var raw []byte
	client := &http.Client{Transport: roundTrip(func(q *http.Request) (*http.Response, error) {
		var err error
		if raw, err = io.ReadAll(q.Body); err != nil {
			t.Error(err)
		}
		return nil, http.ErrHandlerTimeout
	})}
	if err := send(Options{Client: client, Key: "k"}); err == nil || raw == nil {
		t.Fatalf("nothing was sent: %v", err)
	}
	return bytes.TrimSpace(raw)
}

// everything is a request with every kind of block.
func everything() Request {
	return Request{
		Model: "claude-sonnet-5-5", System: "Be brief.", MaxTokens: 1000, Cache: engine.CacheHour,
		Tools: []engine.Tool{{Name: "Read", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}, {Name: "Now"}},
		Messages: []transcript.Message{
			transcript.Said(transcript.User, "What is in it?"),
			{Role: transcript.Assistant, Content: []transcript.Block{
				{Type: transcript.ThinkingBlock, Thinking: "hm", Signature: "c2ln"}, {Type: transcript.ThinkingBlock, Signature: "c2ln"},
				{Type: transcript.RedactedBlock, Data: "eHl6"}, {Type: transcript.TextBlock, Text: "I look."},
				{Type: transcript.ToolUse, ID: "t1", Name: "Read", Input: json.RawMessage(`{"path":"a"}`)}, {Type: transcript.ToolUse, ID: "t2", Name: "Now"}}},
			{Role: transcript.User, Content: []transcript.Block{
				{Type: transcript.ToolResult, ToolUseID: "t1", Content: "text"}, {Type: transcript.ToolResult, ToolUseID: "t2", IsError: true},
				{Type: transcript.TextBlock, Text: "Go on."}}},
			transcript.Said(transcript.Assistant, "It is a text."), transcript.Said(transcript.User, "Thanks."),
		},
	}
}

// seeing is a request with files: of the user, and as results of tools.
func seeing() Request {
	r := everything()
	picture := &transcript.Source{MediaType: "image/png", Name: "cat.png", Size: 3, Content: []byte("png")}
	paper := &transcript.Source{MediaType: "application/pdf", Name: "paper.pdf", Size: 3, Content: []byte("pdf")}
	gone := &transcript.Source{MediaType: "image/png", Name: "gone.png", Size: 3}
	r.Messages[0].Content = append(transcript.Blocks{picture.Block(), paper.Block(), gone.Block()}, r.Messages[0].Content...)
	r.Messages[2].Content[0].Source = picture
	r.Messages[2].Content[1].Source, r.Messages[2].Content[1].IsError = paper, false
	return r
}

const vendorTypes = `import type Anthropic from '@anthropic-ai/sdk';
import type OpenAI from 'openai';
type Messages = Anthropic.MessageCreateParamsStreaming;
type Completions = OpenAI.ChatCompletionCreateParamsStreaming;
type Responses = OpenAI.Responses.ResponseCreateParamsStreaming;
type Thoughtful = Omit<Completions, 'messages'> & { // DeepSeek and Moonshot add a field
  messages: (OpenAI.ChatCompletionMessageParam | OpenAI.ChatCompletionAssistantMessageParam & { reasoning_content: string })[] };
`

// bodies returns a request body of each form that is sent, as "TYPE BODY".
func bodies(t *testing.T) (list []string) {
	t.Helper()
	add := func(kind string, raw []byte) {
		if body := kind + " " + string(raw); !slices.Contains(list, body) {
			list = append(list, body)
		}
	}
	for _, model := range []string{"claude-sonnet-5-5", "claude-opus-4-8", "claude-haiku-4-5"} {
		for _, wish := range []string{"", "off", "adaptive", "2000"} {
			r := everything()
			r.Model, r.Thinking, r.Cache = model, wish, map[bool]engine.Cache{true: engine.CacheHour}[wish == ""]
			add("Messages", sent(t, NewAnthropic, "", r))
		}
	}
	add("Messages", sent(t, NewAnthropic, "", ask("hi")))
	add("Messages", sent(t, NewAnthropic, "", seeing()))
	add("Completions", sent(t, NewOpenAI, "", seeing()))
	add("Completions", sent(t, NewOpenAI, "http://localhost:11434/v1", seeing()))
	for _, wish := range []string{"", "off", "1024", "8000", "32000"} {
		for _, tools := range [][]engine.Tool{nil, everything().Tools} {
			r := everything()
			r.Model, r.Thinking, r.Tools = "gpt-5.1", wish, tools
			add("Completions", sent(t, NewOpenAI, "", r))
		}
	}
	add("Completions", sent(t, NewOpenAI, "http://localhost:11434/v1", ask("hi")))
	add("Messages", searched(t, NewAnthropic, SearchRequest{Query: "x", Allowed: []string{"a.example"}, Model: "claude-opus-4-8", Most: 3, MaxTokens: 100}))
	add("Messages", searched(t, NewAnthropic, SearchRequest{Query: "x", Blocked: []string{"a.example"}, Model: "claude-opus-4-8", Most: 3, MaxTokens: 100}))
	add("Responses", searched(t, NewOpenAI, SearchRequest{Query: "x", Allowed: []string{"a.example"}, Model: "gpt-5.1", Most: 3, MaxTokens: 100}))
	add("Thoughtful", sent(t, NewOpenAI, "https://api.deepseek.com", everything()))
	return list
}

// TestVendorTypes compiles request bodies as constants of the types that the vendors publish. A copy of a body in which one field
// has another name, or a type has another value, must not compile.
func TestVendorTypes(t *testing.T) {
	tsc := compiler(t)
	var source strings.Builder
	source.WriteString(vendorTypes)
	good, broken, seen := bodies(t), []string{}, map[string]bool{}
	for _, body := range good {
		kind, raw, _ := strings.Cut(body, " ")
		broken = append(broken, spoil(t, kind, raw, seen)...)
	}
	constant := func(before, body string) {
		kind, raw, _ := strings.Cut(body, " ")
		fmt.Fprintf(&source, "%s(%s satisfies %s);\n", before, raw, kind)
	}
	for _, body := range good {
		constant("", body)
	}
	for _, body := range broken {
		constant("// @ts-expect-error\n", body) // which is an error itself if the next line is correct
	}
	if len(good) < 15 || len(broken) < 80 {
		t.Errorf("only %d bodies and %d broken copies", len(good), len(broken))
	}
	dir := t.TempDir()
	modules, err := filepath.EvalSymlinks(filepath.Join(filepath.Dir(tsc), ".."))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bodies.ts"), []byte(source.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), tsc, "--strict", "--noEmit", "--skipLibCheck", "--ignoreConfig", "--target", "es2022",
		"--module", "nodenext", "--moduleResolution", "nodenext", "--types", "", "bodies.ts")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// spoil returns copies of a body with one mistake each: a field under another name, or another word where the type is told. Fields
// that were seen at the same place before are left alone.
func spoil(t *testing.T, kind, raw string, seen map[string]bool) (copies []string) {
	t.Helper()
	var body any
	if err := json.Unmarshal([]byte(raw), &body); err != nil {
		t.Fatal(err)
	}
	keep := func() {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		copies = append(copies, kind+" "+string(text))
	}
	var walk func(any, string)
	walk = func(v any, place string) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item, place)
			}
		case map[string]any:
			place = fmt.Sprint(place, v["role"], v["type"])
			for key, value := range v {
				if place := place + " " + key; !seen[place] {
					seen[place] = true
					delete(v, key)
					v[key+"_x"] = value
					keep()
					delete(v, key+"_x")
					if key == "type" || key == "role" {
						v[key] = "x"
						keep()
					}
					v[key] = value
				}
				if free := []string{"input", "input_schema", "parameters"}; !slices.Contains(free, key) {
					walk(value, place+" "+key)
				}
			}
		}
	}
	walk(body, kind)
	return copies
}
