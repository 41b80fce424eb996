package stream

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/server/discord/api"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/runlog"
)

// FuzzContent: whatever arrives, in whatever pieces, every state of an answer is messages that Discord accepts, in which no code
// block is open.
func FuzzContent(f *testing.F) {
	for _, text := range []string{
		"", "hello", "\n\n \n", "```go\nx", "```", "a\xffb\xf0\x9f", strings.Repeat("long line ", 250), strings.Repeat("x", 9000),
		strings.Repeat("```\ncode\n", 400), strings.Repeat("👨‍👩‍👧", 500), strings.Repeat("line\n", 390) + "```sh\necho\n", "-# small\n# large",
	} {
		f.Add(text, uint8(7), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, size, every uint8) {
		now := time.Unix(1700000000, 0)
		c := newContent(able(), now)
		for i := 0; text != ""; i++ {
			n := min(len(text), max(int(size), len(text)/100)+1)
			c.say(text[:n], now)
			text = text[n:]
			switch i % (int(every) + 2) {
			case 0:
				c.hear(runlog.Event{Type: runlog.ToolUse, Tool: "Grep", Input: []byte(`{"pattern":"` + strings.Repeat("*_", 90) + `"}`)}, now)
			case 1:
				now = now.Add(2 * time.Second)
			}
			texts, next := c.live(now)
			checkMessages(t, texts)
			if !next.IsZero() && !next.After(now) {
				t.Errorf("the answer changes at %s, which is not after %s", next, now)
			}
		}
		c.conclude(runlog.Record{ID: "r", Outcome: runlog.Failed, Error: "`@x`"}, nil)
		if !strings.HasSuffix(c.text(), "\n\n-# The turn failed: \\`\\@\u200bx\\`") && c.text() != "-# The turn failed: \\`\\@\u200bx\\`" {
			t.Errorf("the answer ends in %q", c.text())
		}
	})
}

// able is what Discord can do.
func able() messenger.Able { return (*api.Client)(nil).Able() }

func checkMessages(t *testing.T, texts []string) {
	t.Helper()
	if len(texts) == 0 || len(texts) > maxMessages {
		t.Fatalf("%d messages", len(texts))
	}
	for _, text := range texts {
		if messenger.Size(text) > able().Text || strings.TrimSpace(text) == "" || messenger.Closed(text) != text {
			t.Errorf("a message is %q", text)
		}
	}
}

func TestToolLabel(t *testing.T) {
	for _, tc := range []struct{ tool, input, want string }{
		{"Read", `{"file_path":"/home/me/notes.md","offset":3}`, "reading notes.md…"},
		{"Write", `{"file_path":7}`, "using Write…"},
		{"NotebookEdit", `{"notebook_path":"a/b.ipynb"}`, "editing b.ipynb…"},
		{"Grep", `{"pattern":"a|b"}`, `searching for a\|b…`},
		{"Bash", `{"command":"TOKEN=secret /usr/bin/curl -H 'key: secret' x"}`, "running curl…"},
		{"Bash", `{"command":"A=b"}`, "using Bash…"},
		{"WebFetch", `{"url":"https://user:pass@example.org/?key=1"}`, "fetching example.org…"},
		{"WebSearch", `{"query":"<@1> @everyone"}`, "searching the web for \\<\\@\u200b1\\> \\@\u200beveryone…"},
		{"Task", `{"description":"look\naround"}`, "asking a subagent: look around…"},
		{"mcp__ollim__ping_user", `{}`, `using ping\_user…`},
		{"", ``, "using …"},
		{strings.Repeat("x", 200), `[]`, "using " + strings.Repeat("x", maxQuote-1) + "……"},
	} {
		if got := api.Escape(toolLabel(tc.tool, json.RawMessage(tc.input))); got != tc.want {
			t.Errorf("toolLabel(%q, %s) = %q, want %q", tc.tool, tc.input, got, tc.want)
		}
	}
}
