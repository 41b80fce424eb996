package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ollim/ollim/internal/agent/conversation"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/tools"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/media"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/runlog"
)

// engineOf makes the engine of a run.
func (r *Runner) engineOf(s Spec) (engine.Engine, error) {
	made, err := r.Engines(s.Engine.Name)
	if err == nil {
		err = fits(made, s.Engine)
	}
	if err != nil || !s.Engine.Transcribe || s.Engine.Name == engine.Native {
		return made, err
	}
	return &transcriber{Engine: made, runner: r, name: s.Engine.Name}, nil
}

// fits returns a *config.Wrong if an engine cannot promise what a run needs.
func fits(e engine.Engine, c Choice) error {
	if err := engine.GuaranteesOf(e, c.Model).Lacks(c.Needs, c.Name); err != nil {
		return &config.Wrong{Reason: err.Error()}
	}
	return nil
}

// guarantees returns what holds for the agent of an engine, for the record; nil if it is all.
func guarantees(e engine.Engine, model string) []string {
	if g := engine.GuaranteesOf(e, model); g != engine.Complete() {
		return g.List()
	}
	return nil
}

// converse takes the run's turn in the conversation: the agent answers, its duties are enforced, and the session is compacted. granted is the
// most that the run may cost, in USD; 0 is no limit.
func (w *work) converse(ctx context.Context, e engine.Engine, input prompt.Input, granted float64) error {
	turn, err := w.r.conversations().Begin(ctx, w.spec.Conversation, conversation.Parts{
		Engine: e, Tools: w.tools, Run: w.run, Observe: w.spec.Observe.Event,
	})
	if err != nil {
		return err
	}
	defer turn.Close()
	defer w.askOwner(ctx)()
	if turn.Request, err = w.request(granted); err != nil {
		return err
	}
	turn.Fallback = models{w.r, w.spec, w.run}.fallback()
	if w.spec.Compact != "" {
		return w.money.remedy("", w.compactNow(ctx, turn))
	}
	if err = turn.Say(ctx, input); err == nil {
		err = w.enforce(ctx, turn)
	}
	return errors.Join(w.money.remedy(turn.Name(), err), w.compact(ctx, turn, err))
}

// request returns the request to the engine. granted is the most that the run may cost, in USD; 0 is no limit.
func (w *work) request(granted float64) (engine.Request, error) {
	request, err := w.r.requestOf(w.spec, w.run, w.tools)
	if !w.run.Private {
		request.Run.Sent = w.keeper.keep(w.r.Requests, w.run.ID, w.spec.Identity.File)
	}
	request.Limits.MaxCost, request.Limits.Raise, request.Limits.Reserved = granted, w.money.raise(granted), w.run.Reserved
	request.Run.Socket, request.Run.Vars, request.Scope.Seal, request.Scope.Hints = w.box.socket, w.box.vars, w.tools.World.Seal, w.box.hints
	request.Run.Locks = append(request.Run.Locks, w.held.Lock())
	if guard := w.spec.Identity.Guard; guard != nil {
		request.Run.Locks = append(request.Run.Locks, guard.File())
	}
	return request, err
}

// requestOf returns the request as a preview shows it. It takes no locks and reserves no money.
func (r *Runner) requestOf(s Spec, run *runlog.Run, set *tools.Set) (engine.Request, error) {
	seen := slices.DeleteFunc(slices.Clone(s.Input.Piped.Files), func(a engine.Attachment) bool { return !media.IsSeen(a.Type) })
	request := engine.Request{
		Run: engine.Run{ID: run.ID},
		Input: engine.Input{
			System: system(s, run), SystemOnly: !run.Shared, Attachments: seen, Delta: s.Observe.Text, Awaited: s.Policy.Awaited,
		},
		Session: engine.Session{Full: r.full(s, run)},
		Model:   engine.Model{Name: asked(run), Thinking: s.Engine.Thinking},
		Limits:  engine.Limits{MaxTurns: s.Limits.Turns, Patience: s.Limits.Patience, Strict: s.Engine.Needs.MaxCost != ""},
		Scope: engine.Scope{
			Root: cmp.Or(run.Root, string(r.Home)), Dirs: s.Policy.Dirs, Protected: set.World.Protected(),
			BuiltIns: tools.BuiltIns(run.Tools, s.Policy.Offered), Allow: reach(run),
			Servers: s.servers(run), Offline: s.Policy.Seal.Offline,
		},
	}
	if !IsScript(run.Engine) { // a script has no cache
		request.Session.Pace = r.past().pace(s, run.Record)
	}
	if run.Scheduled != nil {
		request.Run.Slot = *run.Scheduled
	}
	return request, s.Origin.Complete(&request)
}

// askOwner lets the owner answer what the run's tools ask, until the returned function is called.
func (w *work) askOwner(ctx context.Context) (stop func()) {
	if !w.run.MayAsk {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		look := time.NewTicker(tools.AskEvery)
		for ctx.Err() == nil {
			asked, err := w.run.Unanswered()
			w.r.Warn(err)
			for _, use := range asked {
				waiting, cancel := context.WithTimeout(ctx, tools.AskPatience)
				allowed := w.spec.Observe.Permit(waiting, use)
				if waiting.Err() == nil { // else the use has been decided meanwhile
					w.r.Warn(w.run.Event(ctx, runlog.Event{Type: runlog.Permitted, Tool: use.Tool, ToolID: use.ToolID, IsError: !allowed}))
				}
				cancel()
			}
			select {
			case <-look.C:
			case <-ctx.Done():
			}
		}
	})
	return func() { cancel(); asking.Wait() }
}
