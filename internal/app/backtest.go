package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/engine/native/builtin"
	"github.com/ollim/ollim/internal/platform/lock"
	"github.com/ollim/ollim/internal/policy"
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
	_, err = run.Bear(ctx, h.Runner(true), record, p.MaxCost, func(ctx context.Context, r *runlog.Run) (err error) {
		b := &backtest.Backtest{
			Plan: p, Book: h.Backtests(), Runs: h.Runs, Asked: h.Requests, Engine: *asker, Live: h.live, Done: done, Sleep: h.app.Sleep, Now: h.app.Now,
			Spent: func(e runlog.Event) error { return r.Event(ctx, e) },
		}
		list, err = b.Run(ctx)
		return err
	})
	return list, err
}

// live uses a reading tool as a run was allowed to use it.
func (h Home) live(ctx context.Context, r runlog.Record, tool string, input []byte) engine.ToolResult {
	set := h.Runner(true).ToolsOf(&runlog.Run{Record: r}, nil)
	p := set.Policy()
	if v := p.Decide(tool, input); !v.Allow {
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

// CheckLive returns the first name in a list that is not one of LiveTools; "" if there is none.
func CheckLive(names []string) string {
	for _, name := range names {
		if !slices.Contains(LiveTools(), strings.TrimSpace(name)) {
			return name
		}
	}
	return ""
}
