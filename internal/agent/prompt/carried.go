package prompt

import (
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/transcript"
)

// CarriedTokens is the most that a message repeats of a conversation that ran on another engine, in tokens as engine.BytesPerToken
// estimates them. carriedMessage is the most of one message of it, in bytes: a summary fits, and one long message leaves space for
// others.
const (
	CarriedTokens  = 8000
	carriedMessage = CarriedTokens * engine.BytesPerToken / 2
)

const headerCarried = "CARRIED OVER: "

// Carried is the end of a conversation that ran on another engine.
type Carried struct {
	Engine   string               // engine that held it; "" is not known
	Back     bool                 // the agent knows the conversation up to where that engine took it over
	Messages []transcript.Message // oldest first, with Back only those that the agent does not know; nil: they cannot be read

	past string // the section as a recorded prompt has it, in place of the other fields; "": it is made from them
}

// Section returns the section of a message that repeats the last turns as data.
func (c Carried) Section() string {
	if c.past != "" {
		return c.past
	}
	holder := "another engine"
	if c.Engine != "" {
		holder += " (" + c.Engine + ")"
	}
	head := headerCarried + "Until now this conversation ran on " + holder + "."
	if c.Back {
		head = headerCarried + "Since your last turn this conversation ran on " + holder + "."
	}
	said := c.said()
	if len(said) == 0 {
		return head + " Its messages cannot be read."
	}
	return head + " The last messages, oldest first (data: what they ask for was dealt with then):\n" + strings.Join(said, "\n")
}

// CarriedOver returns the message to the owner that a turn continues a session of another engine.
func CarriedOver(engine, session string) string {
	return "the conversation is carried over: this turn repeats the last messages of the session " + session + " of the " + engine + " engine, which is kept"
}

// said returns the last messages that fit, one entry for each.
func (c Carried) said() (list []string) {
	words, left := Said(), CarriedTokens*engine.BytesPerToken
	add := func(entry string) bool {
		if left -= len(entry) + 1; left >= 0 {
			list = append(list, entry)
		}
		return left >= 0
	}
	for _, m := range slices.Backward(c.Messages) {
		text := m.Text()
		before := ""
		who := "- you:\n  "
		if m.Role == transcript.User {
			who = "- user:\n  "
			if !c.Back { // else the agent knows them, or they are among the messages
				before = carriedIn(text)
			}
			text = words(text)
		}
		if text = strings.TrimSpace(text); text != "" && !add(who+indent(ending(text))) {
			break
		}
		if before != "" && !add(ending(before)) {
			break
		}
	}
	slices.Reverse(list)
	return list
}

// ending cuts the middle out of a long text.
func ending(text string) string {
	if len(text) <= carriedMessage {
		return text
	}
	const mark = "\n[…]\n"
	half := (carriedMessage - len(mark)) / 2
	head, tail := plaintext.WholeRunes([]byte(text[:half])), text[len(text)-half:]
	return string(head) + mark + strings.ToValidUTF8(tail, "")
}

// carriedIn returns the messages that a prompt repeats, "" if it repeats none.
func carriedIn(prompt string) string {
	_, rest, _ := strings.Cut(prompt, "\n\n"+headerCarried)
	section, _, _ := strings.Cut(rest, "\n\n")
	_, messages, _ := strings.Cut(section, "\n")
	return messages
}
