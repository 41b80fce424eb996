package tools

import (
	"context"
	_ "embed"
	"errors"

	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/update"
)

//go:embed ping_user.md
var pingUserText string

func pingUser() tool {
	return tool{
		name:        "ping_user",
		description: pingUserText,
		schema: `{"type":"object","properties":{"message":{"type":"string","minLength":1},"critical":{"type":"boolean"}},` +
			`"required":["message"],"additionalProperties":false}`,
		may:  pings,
		call: takes(callPing),
	}
}

func callPing(ctx context.Context, b *Set, in struct {
	Message  string `json:"message"`
	Critical bool   `json:"critical"`
}) (string, error) {
	text := update.Clean(in.Message)
	if text == "" {
		return "", errors.New("bad arguments: message is empty")
	}
	return b.reach(ctx, outbox.Message{Text: text, Critical: in.Critical})
}
