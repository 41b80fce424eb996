package backtest

import (
	"context"
	"errors"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Asker asks a model about recorded runs.
type Asker struct {
	Engine native.Engine // its tools are not used
	// Spent records that a request was sent and the usage of its answer; it may be called by several goroutines at once
	Spent func(runlog.Event) error
	Sleep func(context.Context, time.Duration) error
}

// Bounds of asking an overloaded service again.
const (
	overloads = 5
	pause     = 5 * time.Second
)

// Ask lets a model work on one message with the given tools, and begins again if the service is overloaded. The error is the cause of the
// end of ctx, or that of the engine.
func (a Asker) Ask(ctx context.Context, r engine.Request, set engine.Tools) (engine.Result, error) {
	e := a.Engine
	e.Tools, e.Servers, e.Agents = nil, nil, nil
	for try := 0; ; try++ {
		result, err := e.Run(ctx, r, set, func(ev runlog.Event) error {
			switch ev.Type {
			case runlog.UsageEvent:
				r.Limits.Spent += ev.Cost
			case runlog.Request:
			default:
				return nil
			}
			return a.Spent(ev)
		})
		var busy *engine.Overloaded
		if cause := context.Cause(ctx); cause != nil {
			return result, cause
		}
		if !errors.As(err, &busy) || try == overloads {
			return result, err
		}
		if err := a.Sleep(ctx, max(busy.After, pause<<try)); err != nil {
			return result, err
		}
	}
}

// NoTools returns a set without any tool.
func NoTools() engine.Tools { return newReplay(recorded{}, func(error) {}) }
