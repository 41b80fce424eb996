package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
)

// TestClaudeFallback: the real command says that a model does not exist or is refused, and the run goes on with another one. The prompt
// is in the session once. The next run asks the configured model again.
func TestClaudeFallback(t *testing.T) {
	t.Parallel()
	anthropicapi.InCI(t)
	const gone, next = "claude-opus-4-8", "claude-sonnet-5-5"
	for name, reply := range map[string]anthropicapi.Reply{
		"gone":    {Status: 404, Message: "model: " + gone},
		"refused": {Status: 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "refused" {
				anthropicapi.InCI(t)
			}
			c, api := withClaude(t)
			c.ok("config", "set", "fallback", next)
			c.write("routines/look.md", "---\nid: look\ncron: \"0 9 * * *\"\nbackground: true\nsession: persistent\nmodel: "+gone+"\n---\nLook around.\n")
			refused := true
			api.On(func(q anthropicapi.Request) bool { return refused && q.Model == gone }, func(anthropicapi.Request) anthropicapi.Reply { return reply })
			api.Handle(func(anthropicapi.Request) anthropicapi.Reply { return anthropicapi.Reply{Text: "Nothing new."} })
			c.ok("fire", "look")
			var r struct {
				Outcome, Model, Fallback string
				Used                     string `json:"model_used"`
			}
			text, err := os.ReadFile(filepath.Join(c.last(), "run.json"))
			if err == nil {
				err = json.Unmarshal(text, &r)
			}
			if err != nil || r.Outcome != "ok" || r.Model != gone || r.Used != next || !strings.HasPrefix(r.Fallback, gone+" ") {
				t.Errorf("%v %+v", err, r)
			}
			all := api.Requests()
			if last := all[len(all)-1]; last.Model != next || strings.Count(string(last.Raw), "[routine-bg:look]") != 1 {
				t.Errorf("asked %s: %s", last.Model, last.Raw)
			}
			if out := c.ok("updates", "list"); strings.Count(out, next+" answers in place of "+gone) != 1 {
				t.Errorf("the owner is told: %s", out)
			}
			refused = false
			c.ok("fire", "look")
			all = api.Requests()
			if last := all[len(all)-1]; last.Model != gone || !last.Has("Nothing new.") {
				t.Errorf("the next run asked %s: %s", last.Model, last.Raw)
			}
		})
	}
}
