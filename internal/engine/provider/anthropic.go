package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/ollim/ollim/internal/state/transcript"
)

// messages is a service that speaks the Anthropic Messages API.
type messages struct {
	o   Options
	api anthropic.MessageService
}

// NewAnthropic is Anthropic's service, or another that speaks its Messages API. No environment variable and no file of the
// vendor's library is read, and nothing is sent before Ask.
func NewAnthropic(o Options) Provider {
	o = o.withDefaults("https://api.anthropic.com")
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithoutOpenTelemetry(), option.WithMaxRetries(0),
		option.WithBaseURL(strings.TrimSuffix(o.BaseURL, "/v1")), // the library adds it
	}
	if o.Key != "" {
		opts = append(opts, option.WithAPIKey(o.Key))
	}
	return &messages{o: o, api: anthropic.NewMessageService(opts...)}
}

// Ask implements [Provider].
func (m *messages) Ask(ctx context.Context, r Request, delta func(Delta) error) (Answer, error) {
	request, err := anthropicRequest(r)
	if err != nil {
		return Answer{}, err
	}
	raw, err := encode(request)
	if err != nil {
		return Answer{}, err
	}
	l := open(ctx, m.o, r.Model)
	defer l.close()
	// The body is ours: the library's own types take four times as long to encode, and warn on stderr.
	stream := m.api.NewStreaming(l.ctx, anthropic.MessageNewParams{}, option.WithHTTPClient(l),
		option.WithRequestBody("application/json", bytes.NewBuffer(raw)))
	defer func() { _ = stream.Close() }()
	d := &events{draft: draft{delta: delta}, blocks: map[int64]*part{}}
	for !d.whole && stream.Next() {
		if err := d.take(stream.Current()); err != nil {
			return d.answer(r), err
		}
	}
	switch {
	case d.whole && d.begun:
		return d.end(r, l)
	case d.whole:
		d.whole = false
		return d.answer(r), l.reason(errors.New("an answer without its beginning, message_start"))
	}
	if event, ok := errors.AsType[*anthropic.Error](stream.Err()); ok && l.fail == nil && l.ctx.Err() == nil {
		return d.answer(r), l.refusal([]byte(event.RawJSON())).err()
	}
	return d.answer(r), l.reason(stream.Err())
}

// events is a draft that is told of in events. Its blocks have numbers, and those of unknown types are left out.
type events struct {
	draft
	blocks map[int64]*part
	begun  bool
}

func (d *events) take(e anthropic.MessageStreamEventUnion) error {
	switch e.Type {
	case "message_start":
		d.begun = true
		u := e.Message.Usage
		d.count(u.InputTokens, u.OutputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens)
	case "content_block_start":
		return d.start(e.Index, e.ContentBlock)
	case "content_block_delta":
		if p := d.blocks[e.Index]; p != nil {
			return d.more(p, e.Delta)
		}
	case "content_block_stop":
		if p := d.blocks[e.Index]; p != nil {
			p.done = true
		}
	case "message_delta":
		d.stop = stopOf(string(e.Delta.StopReason))
		d.count(e.Usage.InputTokens, e.Usage.OutputTokens, e.Usage.CacheReadInputTokens, e.Usage.CacheCreationInputTokens)
	case "message_stop":
		d.whole = true
	}
	return nil
}

func (d *events) start(index int64, b anthropic.ContentBlockStartEventContentBlockUnion) error {
	switch b.Type {
	case transcript.TextBlock:
		p := d.add(transcript.Block{Type: b.Type})
		d.blocks[index] = p
		return d.grow(p, b.Text)
	case transcript.ThinkingBlock:
		p := d.add(transcript.Block{Type: b.Type, Signature: b.Signature})
		d.blocks[index] = p
		return d.grow(p, b.Thinking)
	case transcript.RedactedBlock:
		d.blocks[index] = d.add(transcript.Block{Type: b.Type, Data: b.Data})
	case transcript.ToolUse:
		input, err := json.Marshal(b.Input) // {} with Anthropic; others send all of it here
		if err != nil {
			input = nil
		}
		d.blocks[index] = d.add(transcript.Block{Type: b.Type, ID: b.ID, Name: b.Name, Input: input})
	}
	return nil
}

func (d *events) more(p *part, delta anthropic.MessageStreamEventUnionDelta) error {
	switch delta.Type {
	case "text_delta":
		return d.grow(p, delta.Text)
	case "thinking_delta":
		return d.grow(p, delta.Thinking)
	case "input_json_delta":
		return d.grow(p, delta.PartialJSON)
	case "signature_delta":
		p.Signature += delta.Signature
	}
	return nil
}

// count takes over what is said of the usage. Each count is of the whole answer so far, and what is left out comes as zero.
func (d *events) count(in, out, read, written int64) {
	for _, c := range []struct {
		of    *int
		count int64
	}{{&d.usage.In, in}, {&d.usage.Out, out}, {&d.usage.CacheRead, read}, {&d.usage.CacheWrite, written}} {
		if c.count > 0 {
			*c.of = int(c.count)
		}
	}
}
