package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
)

// tally reads an answer while it streams: who answers, what was used, how much text there is. It knows the streams and the whole answers of
// the Anthropic Messages API and of OpenAI's chat completions API. Anything else has no usage.
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

	line []byte // an incomplete line, or the whole of an answer that is no stream
	long bool   // the line is longer than maxLine; its rest is ignored
}

// maxLine is how many bytes of a line are looked at.
const maxLine = 8 << 20

// event is what an event of either API, or a whole answer, says about itself.
type event struct {
	Type    string `json:"type"`
	Model   string `json:"model"`
	Message struct {
		Model string `json:"model"`
		Usage *usage `json:"usage"`
	} `json:"message"`
	Delta struct {
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		Input    string `json:"partial_json"`
	} `json:"delta"`
	Usage   *usage `json:"usage"`
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
		} `json:"delta"`
	} `json:"choices"`
	Stop *string `json:"stop_reason"` // of a whole answer
}

// usage has the counts of both APIs. OpenAI's prompt tokens include what came from the cache.
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
}

// add reads a part of the answer.
func (t *tally) add(part []byte) {
	for len(part) > 0 {
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

// end reads what has no line break at its end: a whole answer.
func (t *tally) end() {
	t.take(t.line)
	t.line = nil
}

func (t *tally) take(line []byte) {
	data, streamed := bytes.CutPrefix(line, []byte("data:"))
	data = bytes.TrimSpace(data)
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
	t.model = cmp.Or(t.model, e.Message.Model, e.Model)
	t.count(e.Message.Usage)
	t.count(e.Usage)
	t.said += len(e.Delta.Text) + len(e.Delta.Thinking) + len(e.Delta.Input)
	for _, c := range e.Choices {
		t.said += len(c.Delta.Content) + len(c.Delta.Reasoning)
	}
	t.begun = t.begun || e.Type == "message_start" || len(e.Choices) > 0 || e.Stop != nil
	t.ending = t.ending || e.Type == "message_delta"
	t.complete = t.complete || e.Type == "message_stop" || e.Type == "error" || !streamed
}

// count takes over counts. Those that are absent stay; absurd ones are ignored.
func (t *tally) count(u *usage) {
	if u == nil {
		return
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
