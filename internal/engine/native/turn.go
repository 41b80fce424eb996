package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// turn is the work on one prompt.
type turn struct {
	e           *Engine
	request     engine.Request
	sink        engine.Sink
	tools       *toolbox
	how         asking
	talk        *conversation
	bill        *bill
	final       string // text of the last answer
	uncompacted bool   // the conversation must be compacted, but that failed
}

// mostTurns is the limit of the model's answers in one turn of the conversation.
const mostTurns = 200

// work lets the model answer and uses its tools, until the model uses none.
func (t *turn) work(ctx context.Context) error {
	most := min(mostTurns, cmp.Or(max(0, t.request.Limits.MaxTurns), mostTurns))
	for n := range most {
		a, err := t.answer(ctx)
		if err != nil {
			return err
		}
		if err := t.hear(a); err != nil {
			return err
		}
		uses := toolUses(a.Message)
		err = t.ending(a, n == 0)
		if len(uses) == 0 && a.Stop != provider.Pause {
			return err
		}
		if err == nil {
			err = t.request.Limits.Affordable(t.bill.cost)
		}
		if err := t.act(ctx, uses, err); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s", engine.ErrMaxTurns, plaintext.Count(most, "answer"))
}

// answer returns the model's next answer. It first compacts a conversation that is due. It compacts one that the service rejects as too
// long once, and sends it again.
func (t *turn) answer(ctx context.Context) (provider.Answer, error) {
	for compacted := false; ; compacted = true {
		if t.due() {
			if err := t.tryCompact(ctx); err != nil {
				return provider.Answer{}, err
			}
		}
		a, err := t.ask(ctx, !compacted)
		if !errors.Is(err, errMustCompact) {
			return a, err
		}
		if err := t.tryCompact(ctx); err != nil {
			return provider.Answer{}, err
		}
	}
}

// ending returns nil for an answer that ends a turn properly. The first answer must have text. A model may end without text only after it
// has used tools, or if it has thought and nobody is waiting.
func (t *turn) ending(a provider.Answer, first bool) error {
	id := t.how.model.ID
	switch a.Stop {
	case provider.EndTurn:
		switch silent := first && !t.request.Input.Nudge && strings.TrimSpace(a.Message.Text()) == ""; {
		case silent && thought(a.Message) && t.request.Input.Awaited:
			return fmt.Errorf("%s answered with thinking only", id)
		case silent && !thought(a.Message):
			return fmt.Errorf("%s gave an empty answer", id)
		}
	case provider.MaxTokens:
		return fmt.Errorf("the answer of %s was cut at its token limit: ollim config set native.max-tokens N", id)
	case provider.Refusal:
		return fmt.Errorf("%s refused to answer", id)
	}
	return nil
}

// hear stores an answer, and records its content and cost.
func (t *turn) hear(a provider.Answer) error {
	if len(a.Message.Content) > 0 {
		entry := t.talk.entry(a.Message)
		if t.how.plain {
			entry.Prefix = plain
		} else if thought(a.Message) {
			entry.Prefix = t.how.prefix
		}
		entry.Tokens, entry.More = t.length(a.Usage), len(toolUses(a.Message)) == 0 && a.Stop != provider.EndTurn
		if err := t.talk.add(t.durability(a.Message), entry); err != nil {
			return err
		}
	}
	for _, b := range a.Message.Content {
		var err error
		switch b.Type {
		case transcript.ThinkingBlock:
			err = t.sink(runlog.Event{Type: runlog.Thinking, Text: b.Thinking})
		case transcript.TextBlock:
			err = t.sink(runlog.Event{Type: runlog.Text, Text: b.Text})
		}
		if err != nil {
			return err
		}
	}
	t.final, t.bill.length = a.Message.Text(), t.length(a.Usage)
	return t.bill.book(a.Usage, a.Stop)
}

// hearPart stores the text of an answer that broke off, because a person may have read it, and records what it cost. The tool uses in it
// did not begin.
func (t *turn) hearPart(a provider.Answer) error {
	text := head(a.Message.Text(), keptPart)
	if err := t.bill.bookPart(a.Usage); err != nil || text == "" {
		return err
	}
	t.final = text
	part := t.talk.entry(transcript.Said(transcript.Assistant, text))
	part.More = true
	if err := t.talk.add(store.Buffered, part); err != nil {
		return err
	}
	return t.sink(runlog.Event{Type: runlog.Text, Text: text})
}

// durability returns Synced for an answer that ends the turn or uses a tool which must not be used again: after a power failure it must be
// known that the tool was begun.
func (t *turn) durability(m transcript.Message) store.Durability {
	uses := toolUses(m)
	effects := func(use transcript.Block) bool {
		effect := t.tools.effect(use.Name)
		return effect != engine.ReadsOnly && effect != engine.Reports
	}
	if len(uses) == 0 || slices.ContainsFunc(uses, effects) {
		return store.Synced
	}
	return store.Buffered
}

// length returns the length of the conversation in tokens, including the answer. It never exceeds the window, whatever the service has
// counted.
func (t *turn) length(u runlog.Usage) int {
	n := u.In + u.CacheRead + u.CacheWrite + u.Out
	if window := t.how.model.Window; window > 0 {
		n = min(n, window)
	}
	return n
}
