package run

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/ollim/ollim/internal/agent/notify"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/spend"
)

// TestFaultOf: what the owner is told depends on the kind of an error, and not on its words.
func TestFaultOf(t *testing.T) {
	t.Parallel()
	words := errors.New("not logged in: model authentication: no such file: key was refused")
	for want, errs := range map[notify.Kind][]error{
		"":             {nil, words, context.Canceled, &spend.Limit{Key: "per-run"}, errUnreported},
		notify.Service: {&engine.Overloaded{Reason: words.Error()}, fmt.Errorf("%w: %w", engine.ErrUnavailable, words)},
		notify.Key:     {engine.ErrKey, engine.ErrNoKey, fmt.Errorf("%w: %w", engine.ErrKey, words)},
		notify.Model:   {engine.ErrModel, fmt.Errorf("%w: %w", engine.ErrModel, words)},
		notify.Engine:  {ErrNoEngine, fmt.Errorf("%w: %w", engine.ErrSetup, words)},
		notify.Disk:    {&store.NotWritten{Path: "run.json", Err: syscall.ENOSPC}, fmt.Errorf("%w: %w", engine.ErrSetup, syscall.ENOSPC)},
		notify.Limit:   {&spend.Limit{Key: "per-day", Until: time.Unix(1, 0)}},
	} {
		for _, err := range errs {
			if got := (&work{}).faultOf(err); got != want {
				t.Errorf("%v is %q, want %q", err, got, want)
			}
		}
	}
}
