package provider

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/transcript"
	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/apiserver"
	"github.com/ollim/ollim/internal/testkit/openaiapi"
)

const model = "claude-opus-4-8"

func ask(text string) Request {
	return Request{Model: model, MaxTokens: 1000, Messages: []transcript.Message{transcript.Said(transcript.User, text)}}
}

// reply is one that both kinds of servers understand.
type reply struct {
	thinking, text    string
	uses              []use
	in, out, cached   int // in without those of the cache
	status            int
	message, after    string
	fault             string // hangUp and so on, as in faults
	events            int    // before the fault
	stop              string // as the vendor says it
	delay, eventDelay time.Duration
}

type use struct{ name, input string }

// vendor is one kind of service under test.
type vendor struct {
	name     string
	provider func(o Options) Provider
	reply    func(...reply)
	requests func() int
	lastKey  func() string
	url      string
}

// vendors runs a test against both kinds.
func vendors(t *testing.T, test func(t *testing.T, v vendor)) {
	t.Run("anthropic", func(t *testing.T) {
		s := anthropicapi.New(t)
		test(t, vendor{"anthropic", NewAnthropic, func(list ...reply) {
			for _, r := range list {
				s.Reply(r.anthropic())
			}
		}, func() int { return len(s.Requests()) }, func() string { return s.Requests()[0].Key() }, s.URL()})
	})
	openaiVendor(t, test)
}

func openaiVendor(t *testing.T, test func(t *testing.T, v vendor)) {
	t.Run("openai", func(t *testing.T) {
		s := openaiapi.New(t)
		test(t, vendor{"openai", NewOpenAI, func(list ...reply) {
			for _, r := range list {
				s.Reply(r.openai())
			}
		}, func() int { return len(s.Requests()) }, func() string { return s.Requests()[0].Key() }, s.URL()})
	})
}

func (v vendor) open() Provider { return v.provider(Options{BaseURL: v.url, Key: "sekret-sekret"}) }

var faults = map[string]int{"hangUp": 1, "mute": 2, "cut": 3, "short": 4, "silent": 5, "malformed": 6, "errorEvent": 7, "page": 8, "endless": 9}

func (r reply) anthropic() anthropicapi.Reply {
	a := anthropicapi.Reply{Thinking: r.thinking, Text: r.text, StopReason: r.stop, Delay: r.delay, StreamDelay: r.eventDelay,
		Usage:  anthropicapi.Usage{In: r.in, Out: r.out, CacheRead: r.cached},
		Status: r.status, Message: r.message, RetryAfter: r.after, Fault: apiserver.Fault(faults[r.fault]), After: r.events}
	for _, u := range r.uses {
		a.ToolUses = append(a.ToolUses, anthropicapi.ToolUse{Name: u.name, Input: json.RawMessage(u.input)})
	}
	return a
}

func (r reply) openai() openaiapi.Reply {
	o := openaiapi.Reply{Reasoning: r.thinking, Text: r.text, Finish: r.stop, Delay: r.delay, StreamDelay: r.eventDelay,
		Usage:  openaiapi.Usage{In: r.in + r.cached, Out: r.out, Cached: r.cached},
		Status: r.status, Message: r.message, RetryAfter: r.after, Fault: apiserver.Fault(faults[r.fault]), After: r.events}
	for _, u := range r.uses {
		o.ToolCalls = append(o.ToolCalls, openaiapi.ToolCall{Name: u.name, Arguments: u.input})
	}
	return o
}

// heard collects deltas.
type heard struct{ text strings.Builder }

func (h *heard) take(text string) error {
	h.text.WriteString(text)
	return nil
}

func overloaded(t *testing.T, err error) *engine.Overloaded {
	t.Helper()
	o, ok := errors.AsType[*engine.Overloaded](err)
	if !ok {
		t.Fatalf("not overloaded: %v", err)
	}
	return o
}

// types are those of the blocks of a message.
func types(m transcript.Message) string {
	var list []string
	for _, b := range m.Content {
		list = append(list, b.Type)
	}
	return strings.Join(list, " ")
}

// roundTrip is a transport as a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
