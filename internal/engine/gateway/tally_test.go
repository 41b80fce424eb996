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
	} {
		var got tally
		got.add([]byte(c.answer))
		got.end()
		if got.model != "m-1" || got.usage != c.want || got.said != c.said || got.searches != c.searches || got.begun != c.begun || got.counted != c.counted || got.complete != c.complete {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
