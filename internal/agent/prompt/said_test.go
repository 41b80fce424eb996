package prompt_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/state/update"
)

// TestSaid: of every prompt the body remains, and nothing of what stands before it.
func TestSaid(t *testing.T) {
	said := prompt.Said()
	for _, c := range combinations() {
		for _, full := range []bool{false, true} {
			b := c.brief()
			if full {
				b.Late, b.Session = now.Add(-26*time.Hour), prompt.Compacted
				b.Updates.List = []update.Update{{TS: now.Add(-time.Hour), Message: "one\n\nbody of an update"}, {TS: now, Message: "two"}}
				b.Task.Skills, b.Task.Dirs, b.Task.Subagent, b.Task.Restricted = []string{"a"}, []string{"/x"}, "helper", true
				b.Tools = []string{"Read(./**)"}
			}
			if got := said(prompt.Build(b).Text()); got != b.Task.Body+"\n" {
				t.Errorf("%s, full %v: %q", c.name(), full, got)
			}
		}
	}
	b := prompt.Input{Now: now, Piped: prompt.Piped{Text: "a = 1", Fence: "-----"}}
	for _, body := range []string{"NOTE: buy milk", "UPDATES: none\n\nreally", "[2026-02-24 Tue 02:30 PM PST]", "[x] y"} {
		if b.Task.Body = body; !strings.HasPrefix(said(prompt.Build(b).Text()), body+"\n\nINPUT") {
			t.Errorf("%q became %q", body, said(prompt.Build(b).Text()))
		}
	}
	for _, text := range []string{"", "plain words", "[a list] of words", "UPDATES: mine\n\nx", "[2026-02-24 Tue 02:30 PM PST] on one line"} {
		if got := said(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
