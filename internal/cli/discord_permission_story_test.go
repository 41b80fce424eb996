package cli

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/bwmarrin/discordgo"

	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/testkit/discordapi"
)

// ask lets an agent ask for a permission, and returns the message and where the answer will be.
func (p *phone) ask(ctx context.Context, use string) (message string, answer chan bool) {
	p.t.Helper()
	before := len(p.server.Messages(discordapi.DM))
	answer = make(chan bool, 1)
	go func() { answer <- p.x.Permit(discordapi.DM)(ctx, runlog.Event{Tool: "Bash", Text: use}) }()
	p.server.Wait("the question", func() bool { return len(p.server.Messages(discordapi.DM)) > before })
	return p.latest().ID, answer
}

// TestDiscordPermission: the owner is shown the use, and allows it once, for the session, or not; nobody else can.
func TestDiscordPermission(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	const use = "Bash(echo `id` @everyone\n# more)"
	message, answer := p.ask(t.Context(), use)
	if got := p.latest().Content; !strings.Contains(got, "`` Bash(echo ˋidˋ @everyone # more) ``") || strings.Contains(got, "\n#") {
		t.Errorf("asks %q", got)
	}
	const stranger = "1100000000000000099"
	yes := p.buttons(message)[0].ID
	p.use(p.server.Click(stranger, message, yes))
	p.x.React(&discordgo.MessageReaction{UserID: stranger, MessageID: message, Emoji: discordgo.Emoji{Name: "✅"}})
	p.x.React(&discordgo.MessageReaction{UserID: discordapi.Owner, MessageID: message, Emoji: discordgo.Emoji{Name: "👍"}})
	p.x.React(&discordgo.MessageReaction{UserID: discordapi.Owner, MessageID: "1", Emoji: discordgo.Emoji{Name: "✅"}})
	select {
	case got := <-answer:
		t.Fatalf("answered %v", got)
	default:
	}
	p.click(message, "Allow once")
	if !<-answer || !strings.HasPrefix(p.server.Message(message).Content, "✅ Allowed once: ") || len(p.buttons(message)) > 0 {
		t.Errorf("%+v", p.server.Message(message))
	}
	p.use(p.server.Click(discordapi.Owner, message, yes))
	if got := p.latest().Content; !strings.Contains(got, "this question is no longer open") {
		t.Error(got)
	}
	message, answer = p.ask(t.Context(), use) // once is once
	p.click(message, "Deny")
	if <-answer || !strings.HasPrefix(p.server.Message(message).Content, "❌ Denied: ") {
		t.Errorf("%+v", p.server.Message(message))
	}
}

// TestDiscordPermissionOfSession: what is allowed for the session is not asked again until the conversation is cleared or the
// listener ends.
func TestDiscordPermissionOfSession(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	p.script("turns:\n  - - text: hello\n")
	p.must("chat", "hi")
	message, answer := p.ask(t.Context(), "Bash(date)")
	p.server.Wait("the reaction to be of the question", func() bool {
		p.x.React(&discordgo.MessageReaction{UserID: discordapi.Owner, MessageID: message, Emoji: discordgo.Emoji{Name: "🔁"}})
		return len(answer) > 0
	})
	if !<-answer {
		t.Fatal("denied")
	}
	if !p.x.Permit(discordapi.DM)(t.Context(), runlog.Event{Text: "Bash(date)"}) {
		t.Error("asked again")
	}
	p.slash("clear")
	p.click(p.latest().ID, "Begin a new one")
	message, answer = p.ask(t.Context(), "Bash(date)")
	p.click(message, "Allow for this session")
	if !<-answer {
		t.Error("denied")
	}
	p.restart()
	message, answer = p.ask(t.Context(), "Bash(date)")
	p.click(message, "Deny")
	if <-answer {
		t.Error("allowed")
	}
}

// TestDiscordPermissionWithoutAnswer: nobody answers in time, or nobody can be asked: the use is denied.
func TestDiscordPermissionWithoutAnswer(t *testing.T) {
	t.Parallel()
	p := newPhone(t)
	ctx, late := context.WithCancel(t.Context())
	message, answer := p.ask(ctx, "Bash(date)")
	left := p.buttons(message)
	late()
	if <-answer || !strings.HasPrefix(p.server.Message(message).Content, "❌ Denied, because nobody answered: ") {
		t.Errorf("%+v", p.server.Message(message))
	}
	p.use(p.server.Click(discordapi.Owner, message, left[0].ID))
	if got := p.latest().Content; !strings.Contains(got, "no longer open") {
		t.Error(got)
	}
	p.server.Fail(discordapi.Fault{Method: http.MethodPost, Status: http.StatusForbidden, Code: 50007})
	if p.x.Permit(discordapi.DM)(t.Context(), runlog.Event{Text: "Bash(date)"}) {
		t.Error("allowed")
	}
	if !slices.ContainsFunc(p.warned, func(line string) bool { return strings.Contains(line, "cannot be asked") }) {
		t.Errorf("warned %q", p.warned)
	}
}
