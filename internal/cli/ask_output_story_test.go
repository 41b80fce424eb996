package cli

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/apitest"
)

// TestPipeReceivesFinalText: narration between tools, and what came of an answer that broke off, stay out of a pipe or a file.
func TestPipeReceivesFinalText(t *testing.T) {
	for _, verb := range [][]string{{"-p", "-n", "add type hints"}, {"chat", "add type hints"}} {
		w, api := newNativeWorld(t)
		narrated := apitest.Use("Glob", map[string]string{"pattern": "*"})
		narrated.Text = "Let me look at it first."
		api.Reply(narrated, apitest.Reply{Text: "x: int = 1"})
		if out := w.must(verb...); out != "x: int = 1\n" {
			t.Errorf("%q with narration: %q", verb, out)
		}
		api.Reply(apitest.Reply{Text: strings.Repeat("a broken answer ", 20), Fault: apitest.Cut, After: 6}, apitest.Reply{Text: "x: int = 2"})
		if out := w.must(verb...); out != "x: int = 2\n" {
			t.Errorf("%q after a broken stream: %q", verb, out)
		}
		api.Reply(apitest.Reply{Text: "x: i", StopReason: "max_tokens"})
		if r := w.run(verb...); r.status != 1 || r.out != "" || !strings.Contains(r.errOut, "not whole") {
			t.Errorf("%q, cut short: %+v", verb, r)
		}
	}
}
