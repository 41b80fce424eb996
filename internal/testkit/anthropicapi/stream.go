package anthropicapi

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ollim/ollim/internal/testkit/apiserver"
)

// event is one server-sent event; its JSON has the API's order of keys.
type event struct {
	Type    string       `json:"type"`
	Message *message     `json:"message,omitempty"`
	Index   *int         `json:"index,omitempty"`
	Block   any          `json:"content_block,omitempty"`
	Delta   any          `json:"delta,omitempty"`
	Usage   *deltaUsage  `json:"usage,omitempty"`
	Error   *errorDetail `json:"error,omitempty"`
	Request string       `json:"request_id,omitempty"`
}

type textDelta struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingDelta struct {
	Type     string `json:"type"`
	Thinking string `json:"thinking"`
}

type signatureDelta struct {
	Type      string `json:"type"`
	Signature string `json:"signature"`
}

type inputDelta struct {
	Type string `json:"type"`
	JSON string `json:"partial_json"`
}

type messageDelta struct {
	StopReason   string  `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

type deltaUsage struct {
	In         int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	Out        int `json:"output_tokens"`

	Server *serverUse `json:"server_tool_use,omitempty"`
}

// events returns the stream that delivers m.
func events(m message) []event {
	list := []event{opening(m)}
	for i, b := range m.Content {
		list = append(list, blockEvents(i, b)...)
		if i == 0 {
			list = slices.Insert(list, 2, event{Type: "ping"}) // the API sends one after the first start of a block
		}
	}
	u := m.Usage
	return append(list,
		event{Type: "message_delta", Delta: messageDelta{StopReason: *m.StopReason}, Usage: &deltaUsage{u.In, u.CacheWrite, u.CacheRead, u.Out, u.Server}},
		event{Type: "message_stop"})
}

// opening returns the event message_start: the message without content.
func opening(m message) event {
	m.Content, m.StopReason = []any{}, nil
	m.Usage.Out = min(m.Usage.Out, 1)
	return event{Type: "message_start", Message: &m}
}

func blockEvents(i int, block any) []event {
	start, deltas := block, []any{}
	switch b := block.(type) {
	case textBlock:
		for _, p := range apiserver.Pieces(b.Text) {
			deltas = append(deltas, textDelta{"text_delta", p})
		}
		start = textBlock{Type: b.Type}
	case thinkingBlock:
		for _, p := range apiserver.Pieces(b.Thinking) {
			deltas = append(deltas, thinkingDelta{"thinking_delta", p})
		}
		deltas = append(deltas, signatureDelta{"signature_delta", b.Signature})
		start = thinkingBlock{Type: b.Type}
	case toolUseBlock:
		for _, p := range append([]string{""}, apiserver.Pieces(string(b.Input))...) { // the API begins with an empty one
			deltas = append(deltas, inputDelta{"input_json_delta", p})
		}
		b.Input = json.RawMessage("{}")
		start = b
	}
	list := []event{{Type: "content_block_start", Index: &i, Block: start}}
	for _, d := range deltas {
		list = append(list, event{Type: "content_block_delta", Index: &i, Delta: d})
	}
	return append(list, event{Type: "content_block_stop", Index: &i})
}

// frame returns the event in its wire format.
func (e event) frame() string {
	return fmt.Sprintf("event: %s\ndata: %s\n\n", e.Type, apiserver.Encode(e))
}
