package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/state/runlog"
	"github.com/ollim/ollim/internal/state/transcript"
)

// work gives the agent the prompt, and goes on until its turn ends.
func (e *Engine) work(ctx context.Context, r engine.Request, v visit, t *turn) error {
	hello, err := e.greet(ctx, t)
	if err != nil {
		return err
	}
	prompt, err := e.prompt(r, v, hello)
	if err != nil {
		return err
	}
	if err := e.open(ctx, r, &v, t, hello); err != nil {
		return err
	}
	session := runlog.Event{Type: runlog.Session, Session: v.ID, Parent: v.parent, Model: t.model, Version: hello.Agent.Version, Context: v.Context}
	if err := t.locked(func() error {
		t.cost = bill{model: e.Models.Resolve(bare(t.model)), spent: r.Limits.Spent, most: r.Limits.MaxCost, past: v.Cost, gate: t.gate}
		return t.sink(session)
	}); err != nil {
		return err
	}
	for range mostTurns {
		if err := e.say(ctx, r, v, t, prompt); err != nil {
			return err
		}
		var refused []string
		_ = t.locked(func() error { refused, t.denied = t.denied, nil; return nil })
		if !e.Profile.Denial || len(refused) == 0 {
			return nil
		}
		prompt = []object{{"type": "text", "text": "ollim has refused a use of a tool: " + strings.Join(refused, "; ") +
			"\nGo on without it, and say in your answer what you could not do."}}
	}
	return fmt.Errorf("%w: the agent used tools that were refused, %d times", engine.ErrMaxTurns, mostTurns)
}

// mostTurns is how many prompts a turn has at most: an agent whose turn ends with a refusal is told the reason by a further one.
const mostTurns = 6

func (t *turn) locked(do func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return do()
}

// say sends a prompt, and records how it ended.
func (e *Engine) say(ctx context.Context, r engine.Request, v visit, t *turn, prompt []object) error {
	if err := t.locked(func() error {
		if t.listening, t.next = true, true; t.unsafe() {
			return t.wrongMode(t.mode)
		}
		return t.sink(t.cost.request(r.Limits.Reserved))
	}); err != nil {
		return err
	}
	var end ended
	err := t.conn.call(ctx, "session/prompt", object{"sessionId": v.Agent, "prompt": prompt}, &end)
	if ctx.Err() != nil {
		return e.cancel(ctx, v, t)
	}
	if err != nil {
		return err
	}
	t.rest()
	return t.locked(func() error {
		t.answered = true
		usage := t.cost.close(end)
		if err := errors.Join(t.flush(), t.sink(usage), t.unasked(), t.cost.ended()); err != nil {
			return err
		}
		switch end.Stop {
		case endTurn:
			if e.Profile.Usage && *usage.Usage == (runlog.Usage{}) && len(t.denied) == 0 {
				t.answered = false
				return e.as(cmp.Or(kindOf(t.text), "unreachable"), "no model was asked: "+orElse(t.text, "no answer"))
			}
		case maxTokens:
			return errors.New("the answer was cut off at the model's limit of tokens")
		case maxRequests:
			return engine.ErrMaxTurns
		case refusal:
			return errors.New("the model refused to answer")
		case cancelled:
			if len(t.denied) == 0 {
				return errors.New("the agent has cancelled the turn")
			}
		}
		return nil
	})
}

// longestSilence is how long an agent may send nothing while no tool is used. Agents repeat requests to a service that does not answer, some
// without an end, and say nothing about it.
const longestSilence = 5 * time.Minute

// watch ends the turn if the agent has been silent for a time.
func (t *turn) watch(ctx context.Context, most time.Duration) {
	silent := time.NewTimer(most)
	defer silent.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.beat:
		case <-silent.C:
			_ = t.locked(func() error {
				if ctx.Err() == nil && !t.using() {
					t.fail(fmt.Errorf("%w: the agent has sent nothing for %s: %s", engine.ErrUnavailable, most, orElse(t.trouble, "perhaps its service does not answer")))
				}
				return nil
			})
		}
		silent.Reset(most)
	}
}

// cancel lets the agent end its turn, so that its session can be continued.
func (e *Engine) cancel(ctx context.Context, v visit, t *turn) error {
	cause := context.Cause(ctx)
	late, stop := context.WithTimeout(context.WithoutCancel(ctx), e.Grace)
	defer stop()
	if err := t.conn.notify("session/cancel", object{"sessionId": v.Agent}); err != nil {
		return cause
	}
	t.conn.settle(late)
	_ = t.locked(t.flush) // the error is that of a record which ends anyway
	return cause
}

// record writes what ollim knows of the session after a turn, and what was said in it.
func (v *visit) record(e *Engine, r engine.Request, result engine.Result, t *turn) error {
	if t.note.ID == "" || r.Session.Begins() && !r.Session.Kept() {
		return nil
	}
	n := t.note
	if !t.answered && len(result.Messages) == 0 {
		if v.begins {
			n.Agent = "" // nothing is in the agent's session: the next turn begins another one, with the seed
		}
		return v.write(n)
	}
	n.Seed = ""
	if t.cost.reported {
		n.Cost = t.cost.total
	}
	n.Model, n.Context, n.Window = t.model, cmp.Or(t.cost.context, n.Context), cmp.Or(t.cost.window, n.Window)
	said := transcript.Entry{Message: transcript.Said(transcript.User, r.Input.Prompt), At: e.Disk.Now(), Run: r.Run.ID}
	entries := []transcript.Entry{said}
	for _, m := range result.Messages {
		entries = append(entries, transcript.Entry{Message: m, At: e.Disk.Now()})
	}
	return errors.Join(v.write(n), v.say(entries...))
}
