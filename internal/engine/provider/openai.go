package provider

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/transcript"
)

// completions is a service that speaks OpenAI's chat completions.
type completions struct{ o Options }

// NewOpenAI returns OpenAI's service, or another one that speaks its chat completions.
func NewOpenAI(o Options) Provider {
	return &completions{o.withDefaults(Vendor(config.OpenAI))}
}

// Ask implements [Provider].
func (c *completions) Ask(ctx context.Context, r Request, delta func(text string) error) (Answer, error) {
	x := open(ctx, c.o, r.Model, r.Sent)
	defer x.close()
	d := &chunks{draft: draft{delta: delta}}
	for k, err := range events[chunk](x, c.o.BaseURL+"/chat/completions", c.header(), openaiRequest(r, c.o.BaseURL)) {
		if err == nil {
			err = d.take(k)
		}
		if err != nil {
			return d.answer(r), err
		}
	}
	if d.finished { // [DONE] may be missing, as with some servers
		return d.end(r, x.host)
	}
	return d.answer(r), x.reason(nil)
}

func (c *completions) header() map[string]string {
	header := map[string]string{}
	if c.o.Key != "" {
		header["Authorization"] = "Bearer " + c.o.Key
	}
	return header
}

// chunk is an event, with what servers add to OpenAI's form or leave out of it.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *chunkUsage     `json:"usage"`
	Object  string          `json:"object"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index int `json:"index"`
	Delta struct {
		Content   words     `json:"content"`
		Reasoning words     `json:"reasoning_content"` // DeepSeek, llama.cpp, vLLM before 0.16
		Thoughts  words     `json:"reasoning"`         // OpenRouter, Ollama, Groq, vLLM since
		Refusal   words     `json:"refusal"`
		Calls     []callBit `json:"tool_calls"`
		Function  function  `json:"function_call"` // of old: one call, without an id
	} `json:"delta"`
	Finish string `json:"finish_reason"`
}

type callBit struct {
	Index    *int     `json:"index"` // Gemini leaves it out, Ollama has sent 0 for all
	ID       string   `json:"id"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments words  `json:"arguments"`
}

type chunkUsage struct {
	In      int `json:"prompt_tokens"` // those from the cache too
	Out     int `json:"completion_tokens"`
	Details struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"` // OpenRouter
	} `json:"prompt_tokens_details"`
	Hit int `json:"prompt_cache_hit_tokens"` // DeepSeek
}

// words is a text: a string, nothing for null, the texts of a list of parts (Mistral), other JSON as it is.
type words string

// UnmarshalJSON implements [json.Unmarshaler].
func (w *words) UnmarshalJSON(raw []byte) error {
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if raw[0] == '[' && json.Unmarshal(raw, &parts) == nil {
		*w = ""
		for _, p := range parts {
			if p.Type == "text" {
				*w += words(p.Text)
			}
		}
		return nil
	}
	*w = words(plain(raw))
	return nil
}

func (k chunk) failed() bool {
	return k.Object == "error" || len(k.Error) > 0 && string(k.Error) != "null"
}

// chunks is a draft that comes in chunks.
type chunks struct {
	draft
	calls    []*part
	finished bool // the reason to stop has come
}

func (d *chunks) take(k chunk) error {
	if u := k.Usage; u != nil {
		read := max(u.Details.Cached, u.Hit)
		d.usage.In, d.usage.Out = max(u.In-read-u.Details.Written, 0), u.Out
		d.usage.CacheRead, d.usage.CacheWrite = read, u.Details.Written
	}
	for _, c := range k.Choices {
		if c.Index != 0 {
			continue
		}
		err := d.say(transcript.ThinkingBlock, string(cmp.Or(c.Delta.Reasoning, c.Delta.Thoughts))) // some send both
		if err == nil {
			err = d.say(transcript.TextBlock, string(c.Delta.Content+c.Delta.Refusal))
		}
		if err != nil {
			return err
		}
		if f := c.Delta.Function; len(c.Delta.Calls) == 0 && f != (function{}) {
			c.Delta.Calls = []callBit{{Index: new(int), Function: f}}
		}
		for _, bit := range c.Delta.Calls {
			d.call(bit)
		}
		if c.Finish != "" {
			d.finish(stopOf(c.Finish))
		}
		if c.Delta.Refusal != "" {
			d.stop = Refusal
		}
	}
	return nil
}

// say adds to the last part if it is of this type, else to a new one.
func (d *chunks) say(kind, more string) error {
	if more == "" {
		return nil
	}
	if n := len(d.parts); n > 0 && d.parts[n-1].Type == kind {
		return d.grow(d.parts[n-1], more)
	}
	return d.grow(d.next(transcript.Block{Type: kind}), more)
}

// next begins a part. What came before is complete with it: nothing else says so.
func (d *chunks) next(b transcript.Block) *part {
	for _, p := range d.parts {
		p.done = true
	}
	return d.add(b)
}

// call takes a fragment of a call. The first one of a number has the name; some servers repeat the name in all, and some give
// every call the same number.
func (d *chunks) call(bit callBit) {
	index := len(d.calls) // without a number each is a call of its own, unless it has no name
	if bit.Index != nil {
		index = *bit.Index
	} else if bit.Function.Name == "" && index > 0 {
		index = d.calls[index-1].number
	}
	var p *part
	for _, c := range d.calls {
		same := c.number == index && (bit.ID == "" || bit.ID == c.ID)
		again := bit.Function.Name != "" && bit.Function.Arguments != "" && isObject([]byte(c.grown.String()))
		if same && !again {
			p = c
		}
	}
	if p == nil {
		p = d.next(transcript.Block{Type: transcript.ToolUse, ID: bit.ID})
		p.number, d.calls = index, append(d.calls, p)
	}
	p.Name = cmp.Or(p.Name, bit.Function.Name)
	p.grown.WriteString(string(bit.Function.Arguments))
}

func (d *chunks) finish(stop string) {
	d.finished = true
	if d.stop != Refusal {
		d.stop = stop
	}
	for _, p := range d.parts {
		p.done = true
	}
}
