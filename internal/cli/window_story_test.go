package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// isSummary reports whether a request asks for a summary of the session.
func isSummary(q anthropicapi.Request) bool {
	return strings.Contains(q.LastUserText(), "replaced by a summary")
}

// TestFailedCompactionIsPaidOnce: a persistent session that fills its window and cannot be compacted costs one attempt, not one at
// every fire; the main session is told, once. A day later, and when the session has grown, it is tried again.
func TestFailedCompactionIsPaidOnce(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("config", "set", "models", "small window=10000 output=2000 in=1 out=1")
	w.must("routine", "add", "watch", "--cron", "0 9 * * *", "--background", "--session", "persistent", "--model", "small", "Look around.")
	summaries, length := 0, 8500
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if isSummary(q) {
			summaries++
			return anthropicapi.Reply{Text: " ", Usage: anthropicapi.Usage{In: 8000, Out: 1}}
		}
		return anthropicapi.Reply{Text: "ok", Usage: anthropicapi.Usage{In: length, Out: 1}}
	})
	fires := func(step string, n, want int) {
		t.Helper()
		summaries = 0
		for range n {
			w.must("fire", "watch")
		}
		if summaries != want {
			t.Errorf("%s: %d requests for a summary in %d fires, want %d", step, summaries, n, want)
		}
	}
	fires("not full yet", 1, 0)
	fires("full", 3, 2) // an empty one is asked for once more
	if all := w.must("update", "list", "--all"); strings.Count(all, "was to be compacted, which failed") != 1 {
		t.Errorf("want one update: %s", all)
	}
	length = 9200
	fires("grown", 1, 0) // the length is known from its answer
	fires("grown", 3, 2)
	w.pass(25 * time.Hour)
	fires("a day later", 3, 2)
}

// TestSummaryOfThinker: a summary has its tokens besides those of the model's thoughts, and one that was cut short is asked for
// again with as many as the model can give.
func TestSummaryOfThinker(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("routine", "add", "watch", "--cron", "0 9 * * *", "--background", "--session", "persistent", "--model", "claude-haiku-4-5",
		"--thinking", "8000", "Look around.")
	var left []int
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if !isSummary(q) {
			return anthropicapi.Reply{Text: "ok", Usage: anthropicapi.Usage{In: 165_000, Out: 1}}
		}
		var thinking struct {
			Budget int `json:"budget_tokens"`
		}
		if err := json.Unmarshal(q.Thinking, &thinking); err != nil {
			t.Errorf("thinking %s: %v", q.Thinking, err)
		}
		if left = append(left, q.MaxTokens-thinking.Budget); len(left) == 1 {
			return anthropicapi.Reply{Text: "half a summ", StopReason: "max_tokens"}
		}
		return anthropicapi.Reply{Text: "the summary"}
	})
	w.must("fire", "watch")
	before := w.read("state/routine_sessions/" + w.last()["job"].(string))
	w.must("fire", "watch")
	if len(left) != 2 || left[0] < 8000 || left[1] <= left[0] {
		t.Errorf("tokens left for a summary: %d, want 8000 and then more", left)
	}
	if after := w.read("state/routine_sessions/" + w.last()["job"].(string)); after == before {
		t.Error("the session was not compacted")
	}
	if strings.Contains(w.must("update", "list", "--all"), "could not be compacted") {
		t.Error("a failure was reported")
	}
}

// TestAnswerFitsTheWindow: an answer is given no more tokens than the session leaves of the model's window, and never less than a
// thousand.
func TestAnswerFitsTheWindow(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("config", "set", "models", "small window=20000 output=10000 in=1 out=1")
	w.must("routine", "add", "watch", "--cron", "0 9 * * *", "--background", "--session", "persistent", "--model", "small", "Look around.")
	for _, length := range []int{100, 12_000, 15_000} {
		api.Reply(anthropicapi.Reply{Text: "ok", Usage: anthropicapi.Usage{In: length, Out: 1}}, anthropicapi.Use("search_docs", map[string]string{"query": "x"}))
		api.Reply(anthropicapi.Reply{Text: "ok", Usage: anthropicapi.Usage{In: length, Out: 1}})
		w.must("fire", "watch")
		w.must("fire", "watch")
		all := api.Requests()
		asked := all[len(all)-2].MaxTokens // the first request after the length was known
		if asked < 1000 || asked > 10_000 || length+asked > 20_000 {
			t.Errorf("%d of 20000 tokens in use: an answer of %d was asked for", length, asked)
		}
		if length == 12_000 && asked > 7_900 {
			t.Errorf("no margin is left for what was not counted: %d", asked)
		}
	}
}
