package cli

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestThoughtsOfEarlierTurns: a later turn of a session sends the conversation as the turns before it did, thoughts included, so
// that the service reads it from its cache; but not to a model that leaves them out, nor with another model or other tools.
func TestThoughtsOfEarlierTurns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model   string
		between func(*world)
		keeps   bool
	}{
		"kept":          {"claude-sonnet-5-5", nil, true},
		"older model":   {"claude-haiku-4-5", nil, false},
		"another model": {"claude-sonnet-5-5", func(w *world) { w.must("config", "set", "native.model", "claude-opus-5-5") }, false},
		"other tools": {"claude-sonnet-5-5", func(w *world) {
			w.write("routines/watch.md", strings.Replace(w.read("routines/watch.md"), "background: true", "background: true\nallow-ping: false", 1))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, api := newNativeWorld(t)
			w.must("config", "set", "native.model", c.model)
			w.must("routine", "add", "watch", "--cron", "0 9 * * *", "--background", "--session", "persistent", "Look around.")
			api.Reply(anthropicapi.Reply{Thinking: "first look", ToolUses: []anthropicapi.ToolUse{{Name: "list_reminders"}}}, anthropicapi.Reply{Thinking: "second look", Text: "quiet"})
			w.must("fire", "watch")
			if c.between != nil {
				c.between(w)
			}
			api.Reply(anthropicapi.Reply{Thinking: "third look", Text: "quiet"})
			w.must("fire", "watch")
			all := api.Requests()
			if last := all[len(all)-1]; last.Has("first look") != c.keeps || last.Has("second look") != c.keeps {
				t.Errorf("thoughts were sent: %v, want %v", last.Has("first look"), c.keeps)
			}
		})
	}
}

// TestRefusedThoughts: a service that refuses the thoughts of earlier turns is asked without them, and they are not sent again.
func TestRefusedThoughts(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	w.must("config", "set", "env", "ANTHROPIC_API_KEY=test-key") // a key of one letter is redacted in every word
	w.must("routine", "add", "watch", "--cron", "0 9 * * *", "--background", "--session", "persistent", "--model", "claude-sonnet-5-5", "Look around.")
	refused := 0
	api.Handle(func(q anthropicapi.Request) anthropicapi.Reply {
		if q.Has("first look") {
			refused++
			return anthropicapi.Reply{Status: 400, Message: "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."}
		}
		if strings.Contains(string(q.Raw), "quiet") {
			return anthropicapi.Reply{Text: "quiet"}
		}
		return anthropicapi.Reply{Thinking: "first look", Text: "quiet"}
	})
	for range 4 {
		w.must("fire", "watch")
	}
	if refused != 1 {
		t.Errorf("the thoughts were refused %d times, want 1", refused)
	}
}
