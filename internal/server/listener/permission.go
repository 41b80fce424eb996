package listener

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/server/listener/messenger"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
)

// verdict is the owner's answer to a question about a permission.
type verdict string

const (
	allowOnce    verdict = "once"
	allowSession verdict = "session"
	deny         verdict = "deny"
)

// permissions are the questions that wait for the owner's answer, and what was allowed for the session: until the listener ends or
// the conversation is cleared.
type permissions struct {
	mu      sync.Mutex
	always  map[string]bool         // patterns
	waiting map[string]chan verdict // by the id of a question, and by that of the message that asks it
}

// askTime is how long it may take to send a question.
const askTime = 10 * time.Second

// Permit returns the Permit of a run.Observer that asks the owner in a channel. No answer until the context ends is no.
func (a *Actions) Permit(channel string) func(context.Context, runlog.Event) bool {
	return func(ctx context.Context, use runlog.Event) bool {
		if a.permissions.isAllowed(use.Text) {
			return true
		}
		// No earlier process, of which buttons may be left, has used the id.
		id, answer := strconv.FormatUint(rand.Uint64(), 16), make(chan verdict, 1)
		a.permissions.begin(id, answer)
		defer a.permissions.end(answer)
		able := a.API.Able()
		sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime) // else it could be sent and stay as it is
		defer cancel()
		m, err := a.API.Send(sending, channel, messenger.Outgoing{
			Text: "The agent wants to use " + a.span(use.Text) + ". Allow it?\n" + able.Style.Small + reactions(able) + "Without an answer within a minute it is denied.",
			Buttons: []outbox.Button{
				{Label: "Allow once", ID: outbox.ButtonID(buttonPermit, id, string(allowOnce)), Style: "success"},
				{Label: "Allow for this session", ID: outbox.ButtonID(buttonPermit, id, string(allowSession))},
				{Label: "Deny", ID: outbox.ButtonID(buttonPermit, id, string(deny)), Style: "danger"},
			},
		})
		if err != nil {
			a.warn(fmt.Errorf("the owner cannot be asked: %w", err))
			return false
		}
		a.permissions.sent(id, m.ID)
		var outcome verdict
		select {
		case outcome = <-answer:
		case <-ctx.Done():
		}
		if outcome == allowSession {
			a.permissions.allow(use.Text)
		}
		a.showOutcome(ctx, channel, m.ID, use.Text, outcome)
		return outcome == allowOnce || outcome == allowSession
	}
}

// showOutcome replaces a question by what came of it.
func (a *Actions) showOutcome(ctx context.Context, channel, message, use string, outcome verdict) {
	text := map[verdict]string{
		allowOnce: "✅ Allowed once: ", allowSession: "🔁 Allowed for this session: ", deny: "❌ Denied: ",
	}[outcome]
	if text == "" {
		text = "❌ Denied, because nobody answered: "
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	var err error
	if o := (messenger.Outgoing{Text: text + a.span(use), Buttons: []outbox.Button{}}); a.API.Able().Edits > 0 {
		err = a.API.Edit(ctx, channel, message, o)
	} else {
		_, err = a.API.Send(ctx, channel, o)
	}
	a.warnOf("the outcome of a permission was not shown", err)
}

// answerPermission is a press below such a question.
func (a *Actions) answerPermission(_ context.Context, p press) (string, error) {
	id, answer, _ := strings.Cut(p.arg, ":")
	if !a.permissions.answer(id, verdict(answer)) {
		return "", stale("this question is no longer open")
	}
	return "", nil
}

// React answers a question by a user's reaction to its message. It ignores any other reaction.
func (a *Actions) React(user, message, emoji string) {
	answer, known := map[string]verdict{"✅": allowOnce, "🔁": allowSession, "❌": deny}[emoji]
	if known && a.Owns(user) {
		a.permissions.answer(message, answer)
	}
}

// reactions returns how to answer a question by a reaction.
func reactions(able messenger.Able) string {
	if !able.Reactions {
		return ""
	}
	return "You can also react: ✅ allow once, 🔁 allow for this session, ❌ deny. "
}

// do is alone with the questions.
func (p *permissions) do(what func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting == nil {
		p.always, p.waiting = map[string]bool{}, map[string]chan verdict{}
	}
	what()
}

func (p *permissions) isAllowed(pattern string) (allowed bool) {
	p.do(func() { allowed = p.always[pattern] })
	return allowed
}

func (p *permissions) allow(pattern string) { p.do(func() { p.always[pattern] = true }) }

// forget forgets what was allowed for the session.
func (p *permissions) forget() { p.do(func() { clear(p.always) }) }

func (p *permissions) begin(id string, answer chan verdict) { p.do(func() { p.waiting[id] = answer }) }

// sent lets a question also be answered by the id of its message, unless a button has answered it already: a second answer would
// wait for a reader while it holds the lock.
func (p *permissions) sent(id, message string) {
	p.do(func() {
		if answer, open := p.waiting[id]; open {
			p.waiting[message] = answer
		}
	})
}

func (p *permissions) end(answer chan verdict) { p.do(func() { p.drop(answer) }) }

// drop makes a question one that cannot be answered any more. The caller is in do.
func (p *permissions) drop(answer chan verdict) {
	maps.DeleteFunc(p.waiting, func(_ string, other chan verdict) bool { return other == answer })
}

// answer answers a question. It reports whether that is the first answer, and somebody waits for it.
func (p *permissions) answer(id string, v verdict) (first bool) {
	p.do(func() {
		if waiting, open := p.waiting[id]; open {
			p.drop(waiting)
			waiting <- v
			first = true
		}
	})
	return first
}

// maxUse is how much of a use the owner is shown, in characters.
const maxUse = 1500

// span shows a text as it is, within a line.
func (a *Actions) span(text string) string {
	return a.API.Able().Style.Span(plaintext.Short(plaintext.Line(text), maxUse))
}
