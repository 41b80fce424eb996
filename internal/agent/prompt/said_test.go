package prompt_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/update"
)

// TestSaid: of every prompt the body remains, and nothing of what stands before it.
func TestSaid(t *testing.T) {
	said := prompt.Said()
	for _, c := range combinations() {
		for _, full := range []bool{false, true} {
			b := c.brief()
			if full {
				b.Late, b.Compaction = now.Add(-26*time.Hour), runlog.CompactionDone
				b.Updates = []update.Update{{TS: now.Add(-time.Hour), Message: "one\n\nbody of an update"}, {TS: now, Message: "two"}}
				b.Job.Skills, b.Job.Dirs, b.Job.Subagent, b.Job.AllowedTools = []string{"a"}, []string{"/x"}, "helper", []string{"Read(./**)"}
				b.Tools = []string{"Read(./**)"}
			}
			if got := said(prompt.Build(b)); got != b.Job.Body+"\n" {
				t.Errorf("%s, full %v: %q", c.name(), full, got)
			}
		}
	}
	b := prompt.Brief{Job: job.New("chat"), Now: now, Fence: "-----", Input: "a = 1"}
	for _, body := range []string{"NOTE: buy milk", "UPDATES: none\n\nreally", "[2026-02-24 Tue 02:30 PM PST]", "[x] y"} {
		if b.Job.Body = body; !strings.HasPrefix(said(prompt.Build(b)), body+"\n\nINPUT") {
			t.Errorf("%q became %q", body, said(prompt.Build(b)))
		}
	}
	for _, text := range []string{"", "plain words", "[a list] of words", "UPDATES: mine\n\nx", "[2026-02-24 Tue 02:30 PM PST] on one line"} {
		if got := said(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
