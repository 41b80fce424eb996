package gateway

import (
	"testing"

	"github.com/ollim/ollim/internal/state/runlog"
)

// TestTally: what an answer says of itself, in each wire format, as a stream and as a whole with line breaks in it.
func TestTally(t *testing.T) {
	t.Parallel()
	response := `"model": "m-1", "usage": {"input_tokens": 900, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 500, "cache_write_tokens": 100}}`
	searched := `"output": [{"type": "web_search_call"}, {"type": "message"}]`
	generated := `"modelVersion": "m-1", "usageMetadata": {"promptTokenCount": 700, "toolUsePromptTokenCount": 50, "candidatesTokenCount": 30, "thoughtsTokenCount": 12, "cachedContentTokenCount": 200}`
	thought := runlog.Usage{In: 550, Out: 42, CacheRead: 200}
	used := runlog.Usage{In: 300, Out: 20, CacheRead: 500, CacheWrite: 100}
	for name, c := range map[string]struct {
		answer                   string
		want                     runlog.Usage
		said, searches           int
		begun, counted, complete bool
	}{
		"responses": {
			answer: part(`{"type": "response.created", "response": {"model": "m-1", "usage": null}}`) + part(`{"type": "response.output_item.added"}`) +
				part(`{"type": "response.output_text.delta", "delta": "four"}`) + part(`{"type": "response.output_item.done", "item": {"type": "web_search_call"}}`) +
				part(`{"type": "response.completed", "response": {`+response+"}}"),
			want: used, said: 4, searches: 1, begun: true, counted: true, complete: true,
		},
		"responses, cut off": {
			answer: part(`{"type": "response.output_item.added", "response": {"model": "m-1"}}`) + part(`{"type": "response.function_call_arguments.delta", "delta": "{}"}`),
			said:   2, begun: true,
		},
		"responses, whole":         {answer: "{\n  " + response + ",\n  " + searched + "\n}\n", want: used, searches: 1, begun: true, counted: true, complete: true},
		"responses, more than all": {answer: `{"model": "m-1", "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 500}}}`, want: runlog.Usage{CacheRead: 9}, counted: true, complete: true},
		"responses, absurd":        {answer: `{"model": "m-1", "usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": -5}}}`, complete: true},
		"gemini": {
			answer: part(`{"candidates": [{"content": {"parts": [{"text": "four"}]}}], "modelVersion": "m-1", "usageMetadata": {"promptTokenCount": 700}}`) +
				part(`{"candidates": [{"content": {"parts": [{"functionCall": {}}]}, "finishReason": "STOP"}], `+generated+`}`),
			want: thought, said: 6, begun: true, counted: true, complete: true,
		},
		"gemini, cut off": {
			answer: part(`{"candidates": [{"content": {"parts": [{"text": "four"}]}}], ` + generated + `}`), want: thought, said: 4, begun: true, counted: true,
		},
		"gemini, blocked":   {answer: part(`{"promptFeedback": {"blockReason": "SAFETY"}, ` + generated + `}`), want: thought, counted: true, complete: true},
		"gemini, as a list": {answer: "[{\n\"candidates\": []},\r\n{ " + generated + "}\n]", want: thought, counted: true, complete: true},
		"gemini, with a search": {
			answer: `{"candidates": [{"finishReason": "STOP", "groundingMetadata": {"webSearchQueries": ["a", "b"]}}], ` + generated + `}`,
			want:   thought, searches: 2, begun: true, counted: true, complete: true,
		},
		"gemini, absurd": {answer: `{"modelVersion": "m-1", "usageMetadata": {"promptTokenCount": 9, "cachedContentTokenCount": -5}}`, complete: true},
	} {
		var got tally
		got.add([]byte(c.answer))
		got.end()
		if got.model != "m-1" || got.usage != c.want || got.said != c.said || got.searches != c.searches || got.begun != c.begun || got.counted != c.counted || got.complete != c.complete {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
