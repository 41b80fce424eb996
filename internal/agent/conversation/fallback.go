package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/plaintext"
	"github.com/ollim/ollim/internal/state/model"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Fallback says which models a turn asks if the requested one cannot be used.
type Fallback struct {
	Models   []string // names, in order; those that were tried or passed over are removed
	Table    model.Table
	Patience time.Duration // total wait for an overloaded service before the next model is asked
}

// leastAnswer is the length of an answer, in tokens, that a run must be able to pay for.
const leastAnswer = 1024

// tired reports whether a wait from begun until then exceeds the one after which another model is asked.
func (f Fallback) tired(begun, then time.Time) bool {
	return len(f.Models) > 0 && then.Sub(begun) > f.Patience
}

// watched returns a delta that sets shown when it is given a part of an answer.
func watched(delta func(string) error, shown *bool) func(string) error {
	if delta == nil {
		return nil
	}
	return func(text string) error {
		*shown = true
		return delta(text)
	}
}

// fallBack changes the request, and those that follow in the run, to the next model of Fallback, and records it. why is the error of the
// model that was asked. It reports false if the agent has said something or used a tool, or if no model is left that the run may use; the
// error then says why each was passed over.
func (t *Turn) fallBack(ctx context.Context, r *engine.Request, why error) (fell bool, passed error) {
	standing, err := t.Run.Standing()
	if err != nil || standing.Started || standing.Effects || t.shown || ctx.Err() != nil {
		return false, err
	}
	asked := Named(t.Fallback.Table, cmp.Or(t.model, r.Model.Name))
	for len(t.Fallback.Models) > 0 {
		name := t.Fallback.Models[0]
		t.Fallback.Models = t.Fallback.Models[1:]
		next := Named(t.Fallback.Table, name)
		if next.ID == asked.ID {
			continue
		}
		if err := t.affordable(ctx, *r, next); err != nil {
			passed = errors.Join(passed, fmt.Errorf("fallback %s: %s", next.ID, err.Error())) // no limit of the run
			continue
		}
		e := runlog.Event{Type: runlog.FellBack, Tool: asked.ID, Model: next.ID, Text: reason(asked.ID, why)}
		if err := t.sink(ctx)(e); err != nil {
			return false, err
		}
		r.Model.Name, t.Request.Model.Name = name, name
		if t.keeper != nil {
			t.keeper.Restart()
		}
		return true, nil
	}
	return false, passed
}

// Named returns the model of a name, which may end with a window, as in claude-opus-4-8[1m].
func Named(table model.Table, name string) model.Model {
	name, _, _ = strings.Cut(name, "[")
	return table.Resolve(name)
}

// reason says why a model cannot be used.
func reason(asked string, why error) string {
	said := plaintext.OneLine(why)
	if errors.Is(why, engine.ErrModel) {
		return fmt.Sprintf("%s cannot be used: %s", asked, strings.TrimPrefix(said, engine.ErrModel.Error()+": "))
	}
	return fmt.Sprintf("%s %s: %s", asked, runlog.StaysOverloaded, said)
}

// affordable returns an error unless the run may pay for a request to a model and a short answer, by the table of models. What it may cost
// is then reserved.
func (t *Turn) affordable(ctx context.Context, r engine.Request, m model.Model) error {
	if r.Limits.MaxCost == 0 {
		return nil
	}
	if !m.Priced {
		return fmt.Errorf("its price is not known, so the cost limit cannot be enforced: ollim config set models '%s in=USD out=USD' "+
			"(per million tokens)", m.ID)
	}
	so, err := t.Run.SoFar()
	if err != nil {
		return err
	}
	tokens := so.ContextBefore + (len(r.Input.System)+len(r.Input.Prompt))/engine.Uncounted
	answer, _ := m.Cost(model.Tokens{In: tokens, Out: leastAnswer})
	need := t.spent + max(answer, m.Question(tokens, 0))
	if need > r.Limits.MaxCost {
		return &engine.Unaffordable{Next: need - t.spent, Spent: t.spent, Most: r.Limits.MaxCost}
	}
	if r.Limits.Raise == nil {
		return nil
	}
	_, err = r.Limits.Raise(ctx, need, need)
	return err
}
