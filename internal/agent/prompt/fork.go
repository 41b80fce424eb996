package prompt

import (
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/platform/plaintext"
)

// Fork is what the first prompt of an interactive fork describes.
type Fork struct {
	Topic   string
	Quote   string // beginning of the message that the owner replied to
	Resumed bool   // the fork continues the session that sent the message
	Running bool   // that session's run was still in progress
	Age     time.Duration
}

// howToEnd explains to the agent how a fork ends.
const howToEnd = "Nothing of it reaches the main conversation until it ends: `save_context` makes it the main conversation, " +
	"`report_updates` leaves main a summary and drops it, `exit_fork` drops it. End it when its topic is done, once the owner " +
	"has said something in it."

// ForkStarted returns the first prompt of an interactive fork.
func ForkStarted(f Fork) string {
	parts := []string{"This is an interactive fork, a branch of the main conversation in which you talk with the owner. " + howToEnd}
	if f.Resumed {
		parts[0] = "This is an interactive fork, in which you talk with the owner: they replied to a message that you sent in a " +
			"background run. It is a branch of the session of that run, with the tools of the main conversation; the owner reads " +
			"your answers. Nothing of it reaches the main conversation until it ends: `report_updates` leaves main a summary and drops " +
			"it, `exit_fork` drops it."
		note := fmt.Sprintf("NOTE: The message was sent %s: check what may have changed since then.", Ago(f.Age))
		if f.Running {
			note += " The run is still in progress; what it has done in its current turn is not a part of this fork."
		}
		parts = append(parts, note)
	}
	parts = append(parts, data("THE OWNER REPLIES TO", f.Quote)...)
	switch {
	case f.Topic != "":
		parts = append(parts, "Topic: "+indent(f.Topic)+"\n\nBegin with it.")
	case f.Quote == "":
		parts = append(parts, "No topic was given: the owner will say what it is about.")
	}
	return strings.Join(parts, "\n\n")
}

// ForkTimeout returns the prompt that asks the agent to end a fork in which the owner has said nothing for idle. firm marks the second and
// last prompt. Only a fork of main can be saved.
func ForkTimeout(idle time.Duration, firm, ofMain bool) string {
	s := fmt.Sprintf("The owner has said nothing in this interactive fork for %d minutes. ", int(idle.Minutes()))
	save, or := "", ""
	if ofMain {
		save, or = "`save_context`, ", ", or with `save_context` if it is to become the main conversation"
	}
	if firm {
		return s + "This is the last reminder: end the fork now, with `report_updates` if anything in it is worth knowing, else with " +
			"`exit_fork`" + or + ". Keep it open only if the owner asked you to."
	}
	return s + "If its topic is done, end it (" + save + "`report_updates` or `exit_fork`). If not, ask the owner in one sentence " +
		"whether to go on."
}

// ForkReport asks for the report with which the owner ends a fork.
const ForkReport = "The owner ends this fork. Call `report_updates` now with a summary for the main conversation: what was decided and " +
	"found, what is open. The fork is dropped afterwards."

// ForkReportNudge asks again for that report.
const ForkReportNudge = "[system] You must call `report_updates` before this fork ends. Do it now, in one to three sentences."

// ForkUnreported returns the update that replaces a missing report of a fork.
func ForkUnreported(topic string) string {
	if topic == "" {
		return "The owner ended an interactive fork; its agent left no summary."
	}
	return fmt.Sprintf("The owner ended an interactive fork; its agent left no summary. Its topic was: %s", plaintext.Short(topic, maxQuote))
}

// maxQuote is how much of a message is quoted, in characters.
const maxQuote = 500

// Quote returns the beginning of a message that the owner replied to.
func Quote(text string) string {
	return plaintext.Short(plaintext.Lines(strings.TrimSpace(text)), maxQuote)
}

// Reply returns the text of the owner's reply to a message, with the quoted message.
func Reply(quote string, age time.Duration, text string) string {
	name := "THE OWNER REPLIES TO"
	if age > 0 {
		name = fmt.Sprintf("THE OWNER REPLIES TO A MESSAGE THAT WAS SENT %s", strings.ToUpper(Ago(age)))
	}
	return strings.Join(append(data(name, quote), text), "\n\n")
}
