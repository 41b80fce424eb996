package cli

import (
	"encoding/json"
	"testing"
)

// TestForksCanShareMainsCache: with thinking: main a forked routine and an interactive fork ask with main's thinking, so that the service's
// cache of main's messages serves them; by default they think for themselves.
func TestForksCanShareMainsCache(t *testing.T) {
	t.Parallel()
	w, api := newNativeWorld(t)
	thinking := func() string {
		t.Helper()
		var body struct{ Thinking json.RawMessage }
		if err := json.Unmarshal(lastOf(api).Raw, &body); err != nil {
			t.Fatal(err)
		}
		return string(body.Thinking)
	}
	w.must("chat", "hello")
	main := thinking()
	w.must("routine", "add", "alone", "--cron", "0 9 * * *", "--background", "Look.")
	w.must("routine", "add", "alike", "--cron", "0 9 * * *", "--background", "--thinking", "main", "Look.")
	w.must("fire", "alone")
	if got := thinking(); got == main {
		t.Errorf("by default a fork thinks as main does: %s", got)
	}
	w.must("fire", "alike")
	if got := thinking(); got != main {
		t.Errorf("with thinking: main a fork thinks %s, main %s", got, main)
	}
	w.must("config", "set", "chat.fork-thinking", "main")
	w.must("fork", "start", "a topic")
	w.must("chat", "hello in the fork")
	if got := thinking(); got != main {
		t.Errorf("an interactive fork thinks %s, main %s", got, main)
	}
}
