package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/transcript"
)

// messages is a service that speaks the Anthropic Messages API.
type messages struct{ o Options }

// Vendor returns the address of the service of a vendor: config.Anthropic or config.OpenAI.
func Vendor(api string) string {
	if api == config.OpenAI {
		return "https://api.openai.com/v1"
	}
	return "https://api.anthropic.com"
}

// NewAnthropic returns Anthropic's service, or another one that speaks its Messages API.
func NewAnthropic(o Options) Provider {
	o = o.withDefaults(Vendor(config.Anthropic))
	o.BaseURL = strings.TrimSuffix(o.BaseURL, "/v1")
	return &messages{o}
}

// Ask implements [Provider].
func (m *messages) Ask(ctx context.Context, r Request, delta func(text string) error) (Answer, error) {
	request, err := anthropicRequest(r)
	if err != nil {
		return Answer{}, err
	}
	x := open(ctx, m.o, r.Model, r.Sent)
	defer x.close()
	d := &blocks{draft: draft{delta: delta}, byIndex: map[int]*part{}}
	for e, err := range events[messageEvent](x, m.o.BaseURL+"/v1/messages", m.header(), request) {
		if err == nil {
			err = d.take(e)
		}
		if err != nil {
			return d.answer(r), err
		}
		if d.whole {
			break
		}
	}
	switch {
	case d.whole && d.begun:
		return d.end(r, x.host)
	case d.whole:
		d.whole = false
		return d.answer(r), x.reason(errors.New("an answer without message_start"))
	}
	return d.answer(r), x.reason(nil)
}

func (m *messages) header() map[string]string {
	header := map[string]string{"Anthropic-Version": "2023-06-01"}
	if m.o.Key != "" {
		header["X-Api-Key"] = m.o.Key
	}
	return header
}

// messageEvent is an event of any type. The type says which fields it has.
type messageEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"` // of the block
	Message struct {
		Usage eventUsage `json:"usage"`
	} `json:"message"`
	Block eventBlock `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       words  `json:"text"`
		Thinking   words  `json:"thinking"`
		Input      words  `json:"partial_json"`
		Signature  words  `json:"signature"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage eventUsage `json:"usage"`
}

type eventBlock struct {
	Type      string          `json:"type"`
	Text      words           `json:"text"`
	Thinking  words           `json:"thinking"`
	Signature words           `json:"signature"`
	Data      words           `json:"data"`
	ID        words           `json:"id"`
	Name      words           `json:"name"`
	Content   json.RawMessage `json:"content"` // of the result of a search
	Input     json.RawMessage `json:"input"`   // {} with Anthropic; others send all of it here
}

// eventUsage counts the tokens of the answer so far. A count that is omitted is zero.
type eventUsage struct {
	In         int `json:"input_tokens"`
	Out        int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	Server     struct {
		Searches int `json:"web_search_requests"`
	} `json:"server_tool_use"`
}

func (e messageEvent) failed() bool { return e.Type == "error" }

// blocks is a draft whose blocks have numbers. Blocks of unknown types are omitted.
type blocks struct {
	draft
	byIndex map[int]*part
	begun   bool
}

func (d *blocks) take(e messageEvent) error {
	p := d.byIndex[e.Index]
	switch e.Type {
	case "message_start":
		d.begun = true
		d.count(e.Message.Usage)
	case "content_block_start":
		return d.start(e.Index, e.Block)
	case "content_block_delta":
		if p == nil {
			return nil
		}
		switch e.Delta.Type {
		case "text_delta", "thinking_delta", "input_json_delta":
			return d.grow(p, string(e.Delta.Text+e.Delta.Thinking+e.Delta.Input))
		case "signature_delta":
			p.Signature += string(e.Delta.Signature)
		}
	case "content_block_stop":
		if p != nil {
			p.done = true
		}
	case "message_delta":
		d.stop = stopOf(e.Delta.StopReason)
		d.count(e.Usage)
	case "message_stop":
		d.whole = true
	}
	return nil
}

func (d *blocks) start(index int, b eventBlock) error {
	block, text := transcript.Block{Type: b.Type}, b.Text
	switch b.Type {
	case transcript.TextBlock:
	case transcript.ThinkingBlock:
		block.Signature, text = string(b.Signature), b.Thinking
	case transcript.RedactedBlock:
		block.Data, text = string(b.Data), ""
	case transcript.ToolUse:
		block.ID, block.Name, block.Input, text = string(b.ID), string(b.Name), b.Input, ""
	default:
		return nil
	}
	p := d.add(block)
	d.byIndex[index] = p
	return d.grow(p, string(text))
}

// count takes over the counts that are there.
func (d *blocks) count(u eventUsage) {
	d.usage.In = cmp.Or(max(0, u.In), d.usage.In)
	d.usage.Out = cmp.Or(max(0, u.Out), d.usage.Out)
	d.usage.CacheRead = cmp.Or(max(0, u.CacheRead), d.usage.CacheRead)
	d.usage.CacheWrite = cmp.Or(max(0, u.CacheWrite), d.usage.CacheWrite)
}
