package cli

import (
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// part returns what the record of the last run marks as a part of its prompt.
func (w *world) part(kind string) (text string, found bool) {
	w.t.Helper()
	whole := w.prompt()
	parts, _ := w.last()["prompt_parts"].([]any)
	for _, p := range parts {
		p, _ := p.(map[string]any)
		if p["kind"] == kind {
			at := number(p["at"])
			return whole[at : at+number(p["bytes"])], true
		}
	}
	return "", false
}

// TestPromptPartsAreMarked: the record says which bytes of the prompt are the job's body, so that another body can be put in their place.
func TestPromptPartsAreMarked(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("routine", "add", "look", "--cron", "0 9 * * *", "--background", "--isolated", "Look.\n\nThen look äway.")
	for name, c := range map[string]struct {
		args []string
		body string
	}{
		"routine": {[]string{"fire", "look"}, "Look.\n\nThen look äway."},
		"owner":   {[]string{"chat", "Hello there."}, "Hello there."},
	} {
		api.Reply(anthropicapi.Reply{Text: "Done."})
		w.must(c.args...)
		if body, found := w.part("body"); !found || body != c.body {
			t.Errorf("%s: the body is %q, %v", name, body, found)
		}
		if price, _ := w.last()["price"].(map[string]any); price["in"] == nil || w.last()["model"] == nil {
			t.Errorf("%s: price %v, model %v", name, price, w.last()["model"])
		}
	}
}
