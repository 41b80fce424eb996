package tools

import (
	"context"
	"errors"
	"strings"

	"github.com/ollim/ollim/internal/state/runlog"
)

func persistent(b *Set) error {
	if !b.Run.Persistent {
		return &Refused{"compact_session is for persistent routine sessions only."}
	}
	return nil
}

func callCompact(ctx context.Context, b *Set, in struct {
	Instructions string `json:"instructions"`
}) (string, error) {
	if strings.TrimSpace(in.Instructions) == "" {
		return "", errors.New("bad arguments: instructions are empty")
	}
	if err := b.Run.Event(ctx, runlog.Event{Type: runlog.CompactWish, Text: in.Instructions}); err != nil {
		return "", err
	}
	return "Noted: the session will be compacted by these instructions when this turn ends.", nil
}
