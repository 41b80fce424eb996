package native

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/transcript"
)

// A service binds thoughts to the model and to all that was said before them, the system prompt and the tools included. Where it
// takes them back in later turns, leaving them out changes the conversation, and the service writes all of it to its cache again.

// prefix names what the thoughts of an answer to a question belong to.
func prefix(q provider.Request) string {
	text, err := json.Marshal([]any{q.Model, q.System, q.Tools})
	if err != nil {
		return "" // a schema that is no JSON; the service refuses it
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// messages is entries of the conversation as a question has them. This turn's thoughts are in it, and of earlier turns those that
// were thought under the same prefix, unless the service has refused such thoughts since.
func (t *turn) messages(entries []transcript.Entry) []transcript.Message {
	refused := -1
	for i, e := range entries {
		if e.Prefix == transcript.Plain {
			refused = i
		}
	}
	keeps := provider.KeepsThoughts(t.model.ID) && t.prefix != ""
	messages := make([]transcript.Message, len(entries))
	for i, e := range entries {
		messages[i] = e.Message
		if t.plain || i < t.before && (!keeps || i <= refused || e.Prefix != t.prefix) {
			messages[i] = e.Message.Unthought()
		}
	}
	return messages
}

// thoughtUnder is the Prefix of the entry of an answer to the latest question.
func (t *turn) thoughtUnder(m transcript.Message) string {
	switch {
	case t.plain:
		return transcript.Plain
	case len(m.Unthought().Content) < len(m.Content):
		return t.prefix
	}
	return ""
}
