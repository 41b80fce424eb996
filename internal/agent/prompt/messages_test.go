package prompt_test

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/state/job"
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

// What the owner reads names the job as they know it, and says what is the matter.
func TestMessages(t *testing.T) {
	for got, want := range map[string]string{
		prompt.Unapproved("Market check", "daily-market", []string{"allowed-tools", "gate"}): "Market check waits for your approval: it asks for more than you have approved (allowed-tools, gate). " +
			"To see it and approve it: `ollim approve daily-market`",
		prompt.CatchingUp: "catching up on background activity…",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
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
