package native

import (
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/transcript"
)

// say adds what the user says. What the run has said already, when the service refused for the time being, is not said again.
func (t *turn) say(prompt string) error {
	said := t.entry(transcript.Said(transcript.User, prompt))
	said.Run = t.request.Run.ID
	n := len(t.entries)
	again := n > 0 && t.entries[n-1].Run == said.Run && t.entries[n-1].Message.Text() == prompt
	if again {
		n--
	}
	t.entries = t.file.Settled(t.entries[:n])
	t.before, t.said = len(t.entries), true
	if again {
		t.entries = append(t.entries, said)
		return nil
	}
	return t.append(store.Buffered, said)
}

func (t *turn) entry(m transcript.Message) transcript.Entry {
	return transcript.Entry{Message: m, At: t.e.Now(), Full: t.full}
}

func (t *turn) append(d store.Durability, entry transcript.Entry) error {
	if err := t.file.Append(d, entry); err != nil {
		return err
	}
	t.entries, t.full = append(t.entries, entry), 0
	return nil
}
