package cli

import (
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// TestInitDiscord: the bot's token is typed hidden and checked; a wrong one is asked for again, and the test message arrives.
func TestInitDiscord(t *testing.T) {
	t.Parallel()
	s := discordapi.New(t, discordapi.Options{})
	w := newBareWorld(t, nil)
	w.env["OLLIM_DISCORD_API"] = s.URL()
	r := w.answers([]string{"", "none", "discord", "a-wrong-token", "yes", "discord", discordapi.Token, "yes", "none", "none"}, "init")
	shows(t, r.errOut, "Send messages by [none]: ", "Token of the bot, not shown: ", "ollim: init: the test message: token: ", "Try another way [yes]: ",
		"Token of the bot, not shown: ", "Did it arrive [yes]: ", "messages  Discord")
	if got := s.Said(discordapi.DM); r.status != 0 || len(got) != 1 || got[0] != "This is a test message of ollim init." {
		t.Errorf("%+v, %q", r, got)
	}
	if text := w.secretsFile(); !strings.Contains(text, "\ndiscord.TOKEN="+discordapi.Token+"\n") || strings.Contains(text, "wrong") {
		t.Errorf("%q", text)
	}
	if found := w.holding(".", discordapi.Token); len(found) > 0 || strings.Contains(r.errOut, discordapi.Token) {
		t.Errorf("the token is in %q, %s", found, r.errOut)
	}
	w = newBareWorld(t, nil)
	if r := w.run("init", "--delivery", "discord", "--test-delivery"); r.status != int(statusConfig) || !strings.Contains(r.errOut, "hint: ollim secret set discord.TOKEN") {
		t.Errorf("%+v", r)
	}
}
