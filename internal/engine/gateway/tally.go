package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

// tally reads an answer while it streams: who answers, what was used, how much text there is. It knows the streams and the whole answers of
// the Anthropic Messages API, of OpenAI's APIs for chat completions and responses, and of the Gemini API. Anything else has no usage.
type tally struct {
	model    string
	usage    runlog.Usage
	hour     int  // tokens of usage.CacheWrite that are cached for an hour
	searches int  // searches by the service itself
	counted  bool // usage was reported
	said     int  // bytes of text, thoughts and inputs of tools
	begun    bool // the model has begun to answer
	ending   bool // the usage of the whole answer was reported, and only its end is missing
	complete bool // the end of the answer was seen

	line  []byte // an incomplete line, or the whole of an answer that is no stream
	long  bool   // the line is longer than maxLine; its rest is ignored
	seen  bool   // the answer has begun
	whole bool   // the answer is no stream, but one JSON text
}

// trim cuts off what JSON takes for white space. Other white space has several bytes, of which a part of an answer may have some only.
func trim(text []byte) []byte { return bytes.Trim(text, " \t\r\n") }

// maxLine is how many bytes of a line are looked at.
const maxLine = 8 << 20

// event is what an event of any of the APIs, or a whole answer, says about itself.
type event struct {
	Type    string `json:"type"`
	Model   string `json:"model"`
	Message struct {
		Model string `json:"model"`
		Usage *usage `json:"usage"`
	} `json:"message"`
	Delta    delta  `json:"delta"`
	Usage    *usage `json:"usage"`
	Response struct {
		Model string `json:"model"`
		Usage *usage `json:"usage"`
	} `json:"response"`
	Candidates []candidate `json:"candidates"`
	Version    string      `json:"modelVersion"`
	Metadata   *metadata   `json:"usageMetadata"`
	Feedback   struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Item struct {
		Type string `json:"type"`
	} `json:"item"`
	Output []struct {
		Type string `json:"type"`
	} `json:"output"` // of a whole response
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
		} `json:"delta"`
	} `json:"choices"`
	Stop *string `json:"stop_reason"` // of a whole answer
}

// candidate is an answer of the Gemini API, or a part of it.
type candidate struct {
	Content struct {
		Parts []struct {
			Text string          `json:"text"`
			Call json.RawMessage `json:"functionCall"`
		} `json:"parts"`
	} `json:"content"`
	Finish string `json:"finishReason"`
	Ground struct {
		Queries []string `json:"webSearchQueries"`
	} `json:"groundingMetadata"`
}

// metadata has the counts of the Gemini API. The tokens of the prompt include what came from the cache.
type metadata struct {
	Prompt   int `json:"promptTokenCount"`
	Tools    int `json:"toolUsePromptTokenCount"`
	Out      int `json:"candidatesTokenCount"`
	Thoughts int `json:"thoughtsTokenCount"`
	Cached   int `json:"cachedContentTokenCount"`
}

func (m *metadata) usage() *usage {
	if m == nil || min(m.Prompt, m.Tools, m.Out, m.Thoughts, m.Cached) < 0 || max(m.Prompt, m.Tools, m.Out, m.Thoughts, m.Cached) > engine.MostTokens {
		return nil
	}
	cached := min(m.Cached, m.Prompt)
	return &usage{In: m.Prompt - cached + m.Tools, Out: m.Out + m.Thoughts, CacheRead: cached}
}

// delta is a part of an answer: an object, or a text in the API for responses.
type delta struct{ Text, Thinking, Input string }

// UnmarshalJSON implements [json.Unmarshaler].
func (d *delta) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &d.Text)
	}
	var o struct {
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		Input    string `json:"partial_json"`
	}
	err := json.Unmarshal(raw, &o)
	*d = delta(o)
	return err
}

// usage has the counts of all APIs. OpenAI's tokens of input and prompt include what came from the cache and was written to it.
type usage struct {
	In         int `json:"input_tokens"`
	Out        int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	Cached     struct {
		Hour int `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Server struct {
		Searches int `json:"web_search_requests"`
	} `json:"server_tool_use"`
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Input *struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"` // of the API for responses
}

// add reads a part of the answer.
func (t *tally) add(part []byte) {
	for len(part) > 0 {
		if !t.seen {
			begin := trim(part)
			t.seen = len(begin) > 0
			t.whole = t.seen && (begin[0] == '{' || begin[0] == '[')
		}
		if t.whole {
			if t.long = t.long || len(t.line)+len(part) > maxLine; !t.long {
				t.line = append(t.line, part...)
			}
			return
		}
		line, rest, whole := bytes.Cut(part, []byte("\n"))
		if part = rest; len(t.line)+len(line) > maxLine {
			t.line, t.long = t.line[:0], true
		} else if !t.long {
			t.line = append(t.line, line...)
		}
		if whole {
			t.take(t.line)
			t.line, t.long = t.line[:0], false
		}
	}
}

// end reads what has no line break at its end: a whole answer, or all events of one in a list.
func (t *tally) end() {
	list := []json.RawMessage{t.line}
	if bytes.HasPrefix(trim(t.line), []byte("[")) {
		_ = json.Unmarshal(t.line, &list) // another text says nothing
	}
	for _, event := range list {
		t.take(event)
	}
	t.line = nil
}

func (t *tally) take(line []byte) {
	data, streamed := bytes.CutPrefix(line, []byte("data:"))
	data = trim(data)
	if !streamed && !bytes.HasPrefix(data, []byte("{")) {
		return
	}
	if bytes.Equal(data, []byte("[DONE]")) {
		t.complete = true
		return
	}
	var e event
	if json.Unmarshal(data, &e) != nil {
		return
	}
	t.model = cmp.Or(t.model, e.Message.Model, e.Response.Model, e.Model, e.Version)
	t.count(e.Message.Usage)
	t.count(e.Response.Usage)
	t.count(e.Metadata.usage())
	t.count(e.Usage)
	t.said += len(e.Delta.Text) + len(e.Delta.Thinking) + len(e.Delta.Input)
	for _, c := range e.Choices {
		t.said += len(c.Delta.Content) + len(c.Delta.Reasoning)
	}
	if e.Type == "response.output_item.done" && e.Item.Type == searchCall {
		t.searches = min(t.searches+1, engine.MostSearches)
	}
	for _, item := range e.Output {
		if item.Type == searchCall {
			t.searches = min(t.searches+1, engine.MostSearches)
		}
	}
	t.generated(e)
	t.begun = t.begun || slices.Contains([]string{"message_start", "response.output_item.added"}, e.Type) || len(e.Choices) > 0 || len(e.Output) > 0 || e.Stop != nil
	t.ending = t.ending || e.Type == "message_delta"
	t.complete = t.complete || slices.Contains(lastEvents(), e.Type) || !streamed
	t.ending = t.ending || t.complete
}

// generated reads an event of the Gemini API.
func (t *tally) generated(e event) {
	for _, c := range e.Candidates {
		t.begun, t.complete = true, t.complete || c.Finish != ""
		t.searches = max(t.searches, min(len(c.Ground.Queries), engine.MostSearches))
		for _, p := range c.Content.Parts {
			t.said += len(p.Text) + len(p.Call)
		}
	}
	t.complete = t.complete || e.Feedback.Block != ""
}

// searchCall is the type of an item of a response for a search by the service itself.
const searchCall = "web_search_call"

// lastEvents are the types of events after which no more is said.
func lastEvents() []string {
	return []string{"message_stop", "error", "response.completed", "response.incomplete", "response.failed"}
}

// count takes over counts. Those that are absent stay; absurd ones are ignored.
func (t *tally) count(u *usage) {
	if u == nil {
		return
	}
	if d := u.Input; d != nil {
		if min(d.Cached, d.Written) < 0 || max(d.Cached, d.Written) > engine.MostTokens {
			return
		}
		u.CacheRead = min(d.Cached, max(u.In, 0))
		u.CacheWrite = min(d.Written, max(u.In, 0)-u.CacheRead)
		u.In -= u.CacheRead + u.CacheWrite
	}
	for _, n := range []int{u.In, u.Out, u.CacheRead, u.CacheWrite, u.Prompt, u.Completion, u.Details.Cached, u.Cached.Hour} {
		if n < 0 || n > engine.MostTokens {
			return
		}
	}
	if u.Server.Searches < 0 || u.Server.Searches > engine.MostSearches {
		return
	}
	t.counted, t.searches = true, max(t.searches, u.Server.Searches)
	cached := cmp.Or(u.CacheRead, min(u.Details.Cached, u.Prompt))
	t.usage = runlog.Usage{
		In:         cmp.Or(u.In, u.Prompt-min(u.Details.Cached, u.Prompt), t.usage.In),
		Out:        cmp.Or(u.Out, u.Completion, t.usage.Out),
		CacheRead:  cmp.Or(cached, t.usage.CacheRead),
		CacheWrite: cmp.Or(u.CacheWrite, t.usage.CacheWrite),
	}
	t.hour = cmp.Or(min(u.Cached.Hour, u.CacheWrite), t.hour)
}
