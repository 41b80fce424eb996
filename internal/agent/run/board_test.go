package run_test

import (
	"context"
	"path/filepath"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

// board is a conversation type that only this test has: a message board, each topic of which has a session of its own. It shows
// that a further type needs no change elsewhere.
type board struct {
	dir   string
	topic string
}

func (board) Traits() conversation.Traits {
	return conversation.Traits{Mode: "board", Persistent: true}
}

func (b board) Key() string { return "board-" + b.topic }

func (b board) path() string { return filepath.Join(b.dir, b.topic) }

func (b board) Open(context.Context) (h conversation.History, err error) {
	if id, err := store.Read(b.path()); err == nil {
		h.Session = string(id)
	}
	return h, nil
}

func (b board) Save(_ context.Context, id string) error { return store.Replace(b.path(), []byte(id)) }

func (board) Updates() conversation.UpdatePolicy {
	return conversation.UpdatePolicy{Show: conversation.Peek}
}

func (board) Event() session.Kind { return "board" }

// post is a message on a board, and its answer goes to the board.
func (b board) post(text string, to outbox.Sender) run.Spec {
	return run.Spec{
		Identity:     run.Identity{Subject: runlog.Subject{Kind: "board", Job: b.Key()}},
		Input:        prompt.Input{Task: prompt.Task{Tag: "board:" + b.topic, Body: text, Background: true}},
		Conversation: b,
		Policy:       run.Rights{System: prompt.SystemAlone, Deliver: true},
		Limits:       run.Limits{Time: time.Hour},
		Sender:       to,
	}
}

// wall is where the board's answers appear. It gives each an id of its own.
type wall struct{ messages []outbox.Message }

func (*wall) Configured() bool { return true }

func (w *wall) Send(_ context.Context, m outbox.Message) (outbox.Receipt, error) {
	w.messages = append(w.messages, m)
	return outbox.Receipt{Fate: outbox.Sent, Outside: []string{"wall-" + m.Text}}, nil
}
