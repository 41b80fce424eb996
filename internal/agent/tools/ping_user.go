package tools

import (
	"context"
	_ "embed"
	"encoding/json"
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
		call: callPing,
	}
}

func callPing(ctx context.Context, b *Set, input json.RawMessage) (string, error) {
	var in struct {
		Message  string `json:"message"`
		Critical bool   `json:"critical"`
	}
	if err := decode(input, &in); err != nil {
		return "", err
	}
	text := update.Clean(in.Message)
	if text == "" {
		return "", errors.New("bad arguments: message is empty")
	}
	return b.reach(ctx, outbox.Message{Text: text, Critical: in.Critical})
}
