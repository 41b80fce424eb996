package tools

import (
	"context"
	"strings"

	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/session"
)

func inMain(b *Set) error {
	if b.Run.Key != session.MainKey {
		return &Refused{"enter_fork is for the main conversation only."}
	}
	return nil
}

func callEnterFork(ctx context.Context, b *Set, in struct {
	Topic string `json:"topic"`
}) (string, error) {
	_, open, err := b.Sessions.Fork(ctx)
	if err != nil {
		return "", err
	}
	if open {
		return "", &Refused{"An interactive fork is already open."}
	}
	wish := runlog.Event{Type: runlog.ForkWish, Tool: runlog.EnterFork, Text: strings.TrimSpace(in.Topic)}
	if err := b.Run.Event(ctx, wish); err != nil {
		return "", err
	}
	return "Noted: the interactive fork opens when this turn ends. End the turn now, and go on with the topic there.", nil
}
