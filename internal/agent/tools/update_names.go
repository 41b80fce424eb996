package tools

import (
	"context"
	"errors"
	"fmt"

	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/config"
)

func renames(b *Set) error {
	if !b.Run.Foreground {
		return &Refused{"update_names is for the main conversation only."}
	}
	return nil
}

func callNames(_ context.Context, b *Set, in struct {
	User string `json:"user_name"`
	Bot  string `json:"bot_name"`
}) (string, error) {
	for _, name := range []*string{&in.User, &in.Bot} {
		*name = plaintext.Line(*name) // it becomes part of a sentence in every system prompt
		if err := config.CheckName(*name); *name != "" && err != nil {
			return "", fmt.Errorf("bad arguments: %w", err)
		}
	}
	if in.User == "" && in.Bot == "" {
		return "", errors.New("bad arguments: give user_name, bot_name or both")
	}
	if err := b.SetNames(in.User, in.Bot); err != nil {
		return "", err
	}
	return "Noted.", nil
}
