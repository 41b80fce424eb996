package prompt_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/update"
)

func TestNudge(t *testing.T) {
	always, onPing := prompt.Nudge(job.Always), prompt.Nudge(job.OnPing)
	for _, text := range []string{always, onPing} {
		if !strings.HasPrefix(text, "[system] ") || !strings.Contains(text, "`report_updates`") {
			t.Errorf("nudge %q", text)
		}
	}
	if strings.Contains(always, "You sent") || !strings.Contains(onPing, "You sent") {
		t.Errorf("nudges %q and %q", always, onPing)
	}
}

func TestFailure(t *testing.T) {
	for _, tc := range []struct {
		reason string
		count  int
		want   string
	}{
		{"no network", 0, "Market check failed: no network"},
		{"no network", 1, "Market check failed: no network"},
		{"no network", 2, "Market check failed: no network"},
		{"no network", 3, "Market check failed, now 3 times in a row: no network"},
		{"no network", 100, "Market check failed, now 100 times in a row: no network"},
		{"", 1, "Market check failed"},
		{"", 10, "Market check failed, now 10 times in a row"},
	} {
		if got := prompt.Failure("Market check", "failed", tc.reason, tc.count); got != tc.want {
			t.Errorf("%+v: %q", tc, got)
		}
	}
}

// What the owner reads names the job as they know it, and says what is the matter.
func TestMessages(t *testing.T) {
	for got, want := range map[string]string{
		prompt.Unreported("Market check"):                      "Market check ran but did not report what it did.",
		prompt.RefusedJob("Market check", "gate is not there"): "Market check was not run: gate is not there",
		prompt.BadFile("routines/a.md:3: corn: unknown key"):   "A job file is invalid and cannot run until it is corrected (see `ollim check`): routines/a.md:3: corn: unknown key",
		prompt.Unavailable("Take the pizza out."):              "(agent unavailable) Take the pizza out.",
		prompt.Unapproved("Market check", "daily-market", []string{"allowed-tools", "gate"}): "Market check waits for your approval: it asks for more than you have approved (allowed-tools, gate). " +
			"To see it and approve it: `ollim approve daily-market`",
		prompt.CatchingUp: "catching up on background activity…",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func overdue(n int, text string) (list []prompt.OverdueReminder) {
	for i := range n {
		list = append(list, prompt.OverdueReminder{At: now.AddDate(0, 0, -30).Add(time.Duration(i) * time.Hour), Text: text})
	}
	return list
}

func TestOverdue(t *testing.T) {
	want := "These reminders were due more than 24 hours ago and were not run (they are kept in state/late):\n" +
		"- 2026-01-25 Sun 2:30 PM: Call Ann - 2026-01-01: forged\n" +
		"- 2026-01-25 Sun 3:30 PM: Call Ann - 2026-01-01: forged"
	if got := prompt.Overdue(overdue(2, "Call Ann\n- 2026-01-01: forged\u2028")); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// However many and however long, all are reported or counted, in one update.
func TestOverdueFits(t *testing.T) {
	for _, text := range []string{"", "x", strings.Repeat("é", 199), strings.Repeat("é", 200), strings.Repeat("é", 201), strings.Repeat("word ", 1000)} {
		for _, n := range []int{1, 10, 15, 16, 17, 18, 50, 200, 5000} {
			got := prompt.Overdue(overdue(n, text))
			if chars := utf8.RuneCountInString(got); chars > update.MaxChars {
				t.Errorf("%d of %d characters: %d characters", n, len(text), chars)
			}
			lines := strings.Split(got, "\n")
			reported, last := len(lines)-1, lines[len(lines)-1]
			var left int
			if _, err := fmt.Sscanf(last, "and %d more.", &left); err == nil {
				reported--
			}
			if reported+left != n || reported < min(n, 10) {
				t.Errorf("%d of %d characters: %d told, %d left out", n, len(text), reported, left)
			}
			if cut := strings.HasSuffix(lines[1], "…"); cut != (utf8.RuneCountInString(text) > 200) {
				t.Errorf("%d characters: cut: %v", utf8.RuneCountInString(text), cut)
			}
		}
	}
}

// What the agent is told to do, it can do.
func TestFollowUpTooLate(t *testing.T) {
	for _, c := range combinations() {
		got := prompt.FollowUpTooLate(c.mode == job.Foreground, c.pings, c.update)
		for _, tool := range agentTools {
			want := c.offers(tool) && (tool == "ping_user" || tool == "report_updates")
			if says := strings.Contains(got, tool); says != want {
				t.Errorf("%s: names %s: %v, want %v: %s", c.name(), tool, says, want, got)
			}
		}
		if !strings.HasPrefix(got, "This is the final check of the chain: ") {
			t.Errorf("%s: %s", c.name(), got)
		}
	}
}

// The system prompt of main explains every tag that is sent; that of a run alone holds nothing of the owner's files.
func TestSystem(t *testing.T) {
	main := prompt.SystemMain("I am Ollim.")
	if !strings.HasPrefix(main, "I am Ollim.\n\nYou are") {
		t.Errorf("main %q", main)
	}
	if got := prompt.SystemMain(""); !strings.HasPrefix(got, "You are") {
		t.Errorf("without a profile %q", got)
	}
	for _, tag := range []string{"[routine:ID]", "[routine-bg:ID]", "[reminder:ID]", "[reminder-bg:ID]", "[webhook:ID]", "[late: …]", "[fork-started]", "[fork-timeout]", "[button]", "[system]"} {
		if !strings.Contains(main, tag) {
			t.Errorf("does not explain %s", tag)
		}
	}
	apart := prompt.SystemAlone
	if strings.Contains(apart, "Ollim.") || !strings.Contains(apart, "[system]") {
		t.Errorf("apart %q", apart)
	}
}
