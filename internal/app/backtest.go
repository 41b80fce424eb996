package app

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native/builtin"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/policy"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Backtests returns the backtests of the data directory.
func (h Home) Backtests() backtest.Book { return backtest.Book{Home: h.Dir, Disk: h.Disk} }

// LiveTools are the tools that a backtest may use now.
func LiveTools() []string { return []string{"Read", "Glob", "Grep", "WebFetch"} }

// Backtest carries out a plan, and returns the verdicts that were reached. done is called with each new one. The work is a run: the first
// time it has the id of the plan. owner says that the owner typed the command, so that no limit of spending
// binds it. The errors are those of backtest.Backtest.Run.
func (h Home) Backtest(ctx context.Context, p backtest.Plan, owner bool, done func(backtest.Verdict)) (list []backtest.Verdict, err error) {
	if path := h.Dir.Backtest(p.ID, "lock"); !lock.Free(path) {
		return nil, fmt.Errorf("backtest %s is in progress: %w", p.ID, lock.ErrBusy)
	}
	asker, err := h.native(true)
	if err != nil {
		return nil, err
	}
	model := p.Model
	if model == "" && asker.Model != "" {
		model = asker.Model
	}
	record := runlog.Record{
		ID: p.ID, Subject: runlog.Subject{Kind: "backtest", Job: "backtest", Name: "backtest", Description: "Backtest of " + p.Name},
		Mode: "backtest", Engine: engine.Native, Model: model, Owner: owner,
	}
	if _, err := h.Runs.Load(p.ID); err == nil { // it goes on
		record.ID = ""
	}
	_, err = run.Work(ctx, h.Runner(true), record, p.MaxCost, func(ctx context.Context, r *runlog.Run, raise run.Raise) (err error) {
		var booking sync.Mutex
		b := &backtest.Backtest{
			Plan: p, Book: h.Backtests(), Runs: h.Runs, Asked: h.Requests, Live: h.live, Refuses: h.refuses, Raise: raise, Done: done, Hide: r.Hide, Now: h.app.Now,
			Asker: backtest.Asker{Engine: *asker, Sleep: h.app.Sleep, Spent: func(e runlog.Event) error {
				booking.Lock()
				defer booking.Unlock()
				e.Context, e.Window, e.CompactAt = 0, 0, 0    // of one of many conversations
				return r.Event(context.WithoutCancel(ctx), e) // it is paid for, whatever ends the backtest
			}},
		}
		list, err = b.Run(ctx)
		return err
	})
	return list, err
}

// live uses a reading tool as a run was allowed to use it.
func (h Home) live(ctx context.Context, r runlog.Record, tool string, input []byte) engine.ToolResult {
	p := h.policyOf(r)
	switch v := p.Decide(tool, input); {
	case !slices.Contains(LiveTools(), tool), tool == "WebFetch" && r.Network == job.NetworkNone:
		return engine.ToolResult{Text: tool + " may not be used now", IsError: true}
	case !v.Allow:
		return engine.ToolResult{Text: v.Reason, IsError: true}
	}
	box := &builtin.Box{Roots: p.Roots, Protected: p.Protected, Secrets: h.secrets(), Env: withoutKeys(h.ProgramEnv())}
	for _, text := range r.Tools {
		if pattern, err := policy.Parse(text); err == nil {
			box.Allow = append(box.Allow, pattern)
		}
	}
	box.Open()
	return box.Call(ctx, tool, input)
}

func (h Home) policyOf(r runlog.Record) policy.Policy {
	return h.Runner(true).ToolsOf(&runlog.Run{Record: r}, nil).Policy()
}

// refuses returns why a run may not use a tool; "" if it may.
func (h Home) refuses(r runlog.Record, tool string, input []byte) string {
	p := h.policyOf(r)
	if v := p.Decide(tool, input); !v.Allow {
		return v.Reason
	}
	return ""
}
