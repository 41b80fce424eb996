package acp

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/trialmodel"
)

// TestTry: an agent passes that asks before it runs a command, and obeys the refusal. Nothing of it stays, and its key is not used.
func TestTry(t *testing.T) {
	for words, want := range map[string]string{
		"":              "",
		"toolless free": "it does not offer its model the tool bash",
		"bold":          "it runs a command that ollim refuses",
		"deaf":          "it runs a command that ollim refuses",
		"timid":         "it does not ask before it runs a command",
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strings.Fields(words)...)
			w.Profile.Services = []Service{{Keys: []string{"TEST_KEY"}, Base: "TEST_BASE", Address: "https://127.0.0.1:9", Paths: []string{"/messages"}}}
			w.Profile.Keys, w.Profile.Reads = []string{"TEST_KEY"}, []string{"TEST_SETTINGS"}
			w.Profile.AsksAll = words != "timid" // one that does is refused, as in a run
			w.Profile.Env = append(w.Profile.Env, "AGENT_BASE=${base}")
			w.Profile.Try = trialmodel.Use{Tool: "bash", Input: `{"command":"touch tried"}`}
			w.Env = append(w.Env, "TEST_KEY=secret", "TEST_SETTINGS=/nonexistent")
			version, fault, err := w.Try(t.Context())
			if version != "1.2.3" || fault != want || err != nil {
				t.Errorf("%s: %q, %v", version, fault, err)
			}
			if left, err := os.ReadDir(w.Home.ACPSessions()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// TestTryEnds: the end of the context ends a trial, and an agent that leaves the mode in which it asks fails it. An agent of which no service
// is known is only asked for its version.
func TestTryEnds(t *testing.T) {
	w := newWorld(t, "mute")
	w.Profile.Services = []Service{{Keys: []string{"TEST_KEY"}, Base: "TEST_BASE"}}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, fault, err := w.Try(ctx); fault != "" || err == nil {
		t.Errorf("%q, %v", fault, err)
	}
	if version, fault, err := newWorld(t).Try(t.Context()); version != "1.2.3" || fault != "" || err != nil {
		t.Errorf("%s: %q, %v", version, fault, err)
	}
	w = newWorld(t, "yolo", "stubborn", "first")
	w.Profile.Services = []Service{{Keys: []string{"TEST_KEY"}, Base: "TEST_BASE"}}
	if _, fault, err := w.Try(t.Context()); fault != "" || !errors.Is(err, engine.ErrSetup) || !strings.Contains(err.Error(), `in the mode "yolo" instead of "asks"`) {
		t.Errorf("%q, %v", fault, err)
	}
	w.Profile = Unknown()
	if version, fault, err := w.Try(t.Context()); version != "" || fault != "" || err != nil {
		t.Errorf("an agent that runs only sealed: %s, %q, %v", version, fault, err)
	}
}
