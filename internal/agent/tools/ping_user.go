package tools

import (
	"context"
	"errors"

	"github.com/ollim/ollim/internal/state/outbox"
	"github.com/ollim/ollim/internal/state/update"
)

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
