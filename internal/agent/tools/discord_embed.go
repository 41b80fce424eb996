package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/question"
)

func callEmbed(ctx context.Context, b *Set, in struct {
	outbox.Embed
	Critical bool `json:"critical"`
}) (string, error) {
	embed, err := in.Clean()
	if err != nil {
		return "", fmt.Errorf("bad arguments: %w", err)
	}
	buttons, err := Buttons(ctx, b.Questions, &embed)
	if err != nil {
		return "", err
	}
	return b.reach(ctx, outbox.Message{Text: embed.Text(), Embed: &embed, Buttons: buttons, Critical: in.Critical})
}

// Buttons takes the buttons out of an embed, whose prompts it keeps.
func Buttons(ctx context.Context, prompts question.Book, e *outbox.Embed) (list []outbox.Button, err error) {
	for _, a := range e.Actions {
		verb, arg, _ := strings.Cut(a.Action, ":")
		if verb == outbox.ButtonAgent {
			if arg, err = prompts.KeepPrompt(ctx, arg); err != nil {
				return nil, err
			}
		}
		list = append(list, outbox.Button{Label: a.Label, ID: outbox.ButtonID(verb, arg), Style: a.Style})
	}
	e.Actions = nil
	return list, nil
}
