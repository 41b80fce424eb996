package native

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/transcript"
)

// A service binds thoughts to the model and to everything before them, including the system prompt and the tools. If the service accepts
// thoughts in later turns, omitting them changes the conversation, and the service writes all of it to its cache again.

// plain is the prefix of an answer to a request without earlier thoughts, which the service had rejected.
const plain = "plain"

// prefix identifies the model, system prompt and tools that thoughts in the answer to a question are bound to.
func prefix(q provider.Request) string {
	text, err := json.Marshal([]any{q.Model, q.System, q.Tools})
	if err != nil {
		return "" // a schema is not valid JSON; the service will reject it
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Prefix returns what identifies the model, the system prompt and the tools of a request, as an entry of a transcript names them.
func (e *Engine) Prefix(r engine.Request, tools engine.Tools) string {
	return prefix(provider.Request{Model: e.model(r).ID, System: r.Input.System, Tools: e.toolbox(r, tools).offer()})
}

// messages returns entries as they appear in a question: with the thoughts of this turn, and those of earlier turns with the same prefix,
// unless the service has rejected such thoughts since.
func (t *turn) messages(entries []transcript.Entry) []transcript.Message {
	refused := -1
	for i, e := range entries {
		if e.Prefix == plain {
			refused = i
		}
	}
	keeps := provider.KeepsThoughts(t.how.model.ID) && t.how.prefix != ""
	messages := make([]transcript.Message, len(entries))
	for i, e := range entries {
		messages[i] = e.Message
		if t.how.plain || i < t.talk.start && (!keeps || i <= refused || e.Prefix != t.how.prefix) {
			messages[i] = e.Message.Unthought()
		}
	}
	return messages
}

func thought(m transcript.Message) bool { return len(m.Unthought().Content) < len(m.Content) }
