package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/ollim/ollim/internal/testkit/anthropicapi"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// press clicks the button of a message whose id matches.
func (b *bot) press(message, id string) {
	b.w.t.Helper()
	found := regexp.MustCompile(id).FindString(string(b.Message(message).Components))
	if found == "" {
		b.w.t.Fatalf("no button %s in %s", id, b.Message(message).Components)
	}
	b.Click(discordapi.Owner, message, found)
}

// begins returns the latest message that begins with a text, after waiting for n of them.
func (b *bot) begins(text string, n int) (id string) {
	b.w.t.Helper()
	b.Wait(text, func() bool {
		found := 0
		for _, m := range b.Messages(discordapi.DM) {
			if strings.HasPrefix(m.Content, text) {
				found, id = found+1, m.ID
			}
		}
		return found >= n
	})
	return id
}

// TestListenInteracts: a command is answered, and a button of a message that was sent without the listener says its prompt, after a
// restart of the listener.
func TestListenInteracts(t *testing.T) {
	t.Parallel()
	w, s := onDiscord(t, discordapi.Options{})
	w.must("ping", "--embed", `{"title":"The week","buttons":[{"label":"Plan it","action":"agent:Plan the week"}]}`)
	sent := s.Messages(discordapi.DM)[0].ID
	b := w.listen(s)
	b.Slash(discordapi.Owner, "version")
	b.begins("```\nollim ", 1)
	b.Slash(discordapi.Owner, "fork", discordapi.Option{Name: "topic", Value: "the trip"})
	fork := b.begins("A fork is open", 1)
	b.end()
	b = w.listen(s)
	b.press(fork, "ollim:fork_exit:[^\"]*")
	b.Wait("the question", func() bool { return strings.Contains(string(b.Message(fork).Components), "Press again: Exit") })
	b.press(fork, "ollim:fork_exit:[^\"]*")
	b.begins("The fork has ended and was dropped.", 1)
	b.press(sent, "ollim:agent:[0-9a-f]*")
	b.begins("The answer.", 1)
	if prompt := w.prompt(); !strings.HasPrefix(prompt, "[button] [") || !strings.Contains(prompt, "\nPlan the week\n") {
		t.Errorf("prompt %q", prompt)
	}
	b.Wait("the button is disabled", func() bool {
		return strings.Contains(strings.ReplaceAll(string(b.Message(sent).Components), " ", ""), `"disabled":true`)
	})
	if out := b.end(); out != "" {
		t.Errorf("stderr %q", out)
	}
}

// TestListenAsksForPermission: a turn that came from Discord asks there, and takes a button or a reaction for an answer.
func TestListenAsksForPermission(t *testing.T) {
	t.Parallel()
	model := anthropicapi.New(t)
	w, s := onDiscord(t, discordapi.Options{}, "env", "ANTHROPIC_API_KEY=k", "native.base-url", model.URL(), "engine", "native", "chat.permissions", "default")
	w.write("notes.txt", "seen\n")
	model.Handle(func(r anthropicapi.Request) anthropicapi.Reply {
		if results := r.ToolResults(); len(results) > 0 {
			return anthropicapi.Reply{Text: "<" + strings.TrimSpace(results[0].ResultText) + ">"}
		}
		return anthropicapi.Use("Bash", map[string]string{"command": "cat notes.txt"})
	})
	b := w.listen(s)
	b.Say(discordapi.Post{Text: "look"})
	asked := b.begins("The agent wants to use `` Bash(cat notes.txt) ``.", 1)
	b.press(asked, "ollim:permit:[0-9a-f]*:once")
	b.begins("✅ Allowed once: ", 1)
	b.begins("<seen>", 1)
	b.Say(discordapi.Post{Text: "again"})
	asked = b.begins("The agent wants to use", 1)
	b.Wait("the reaction to count", func() bool { // from when the bot knows the message's id
		b.React(discordapi.Owner, asked, "❌")
		return strings.HasPrefix(b.Message(asked).Content, "❌ Denied: ")
	})
	b.begins("<Bash: the owner said no>", 1)
	if out := b.end(); out != "" {
		t.Errorf("stderr %q", out)
	}
}
