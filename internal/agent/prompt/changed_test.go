package prompt_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/schedule/forecast"
	"github.com/ollim/ollim/internal/state/job"
)

// TestSaidWhenChanged: a persistent session is told how long it is, what is left of the ping budget and what lies ahead when that has
// changed, and all of it when its session is new.
func TestSaidWhenChanged(t *testing.T) {
	b := combination{job.Persistent, job.Routine, "none", true, job.OnPing, false}.brief()
	b.Context = prompt.Context{Tokens: 130_000, Full: 200_000, Growth: 2100}
	b.Forward.Last = b.Forward.Entries[3].At
	const context, pings = "\n\nCONTEXT: 130k of 200k tokens (65 %), about +2.1k a fire\n\n", "\n\nPINGS: budget"
	fire := func(step string, wantContext, wantPings bool) {
		t.Helper()
		text := prompt.Build(b).Text()
		if got := strings.Contains(text, "CONTEXT: "); got != wantContext {
			t.Errorf("%s: says how long it is: %v\n%s", step, got, text)
		}
		if got := strings.Contains(text, pings); got != wantPings {
			t.Errorf("%s: says what is left: %v\n%s", step, got, text)
		}
		b.Told = b.Tells()
		b.Told.Session = "s"
		b.Now = b.Now.Add(5 * time.Minute)
	}
	if text := prompt.Build(b).Text(); !strings.Contains(text, context) {
		t.Errorf("got %s, want %s", text, context)
	}
	fire("the first", true, true)
	fire("nothing changed", false, false)
	b.Budget.NextRefill -= 5 * time.Minute
	b.Context.Tokens += 2100
	fire("only the time", false, false)
	b.Context.Tokens += 8000
	fire("a longer session", true, false)
	b.Budget.Available--
	fire("a ping less", false, true)
	b.Forward.Entries[2].At = b.Forward.Entries[2].At.Add(time.Hour)
	fire("a task fires again", false, false)
	b.Forward.Entries = append(b.Forward.Entries, forecast.Entry{At: b.Now.Add(time.Hour), Label: "New", Path: "routines/new.md"})
	fire("a new task", false, true)
	b.Forward.Entries = b.Forward.Entries[:4]
	fire("a task is gone", false, true)
	b.Now = b.Now.AddDate(0, 0, 1)
	fire("another day", false, true)
	b.Session = prompt.Lost
	fire("a lost session", true, true)
	b.Session, b.Task.AllowPing = 0, false
	fire("no pings", false, false)
}

func TestThousands(t *testing.T) {
	for want, c := range map[string]prompt.Context{
		"CONTEXT: 84k of 120k tokens (70 %), about +640 a fire":  {Tokens: 84_400, Full: 120_000, Growth: 640},
		"CONTEXT: 9.9k of 20k tokens (49 %), about +1.0k a fire": {Tokens: 9_940, Full: 20_000, Growth: 1_000},
		"CONTEXT: 900 of 20k tokens (4 %)":                       {Tokens: 900, Full: 20_000},
	} {
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
