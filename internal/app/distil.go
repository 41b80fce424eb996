package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ollim/ollim/internal/agent/backtest"
	"github.com/ollim/ollim/internal/agent/distil"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/engine"
	"github.com/ollim/ollim/internal/platform/process"
	"github.com/ollim/ollim/internal/platform/store"
	"github.com/ollim/ollim/internal/state/job"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Distils returns the gates that models have written.
func (h Home) Distils() distil.Book { return distil.Book{Home: h.Dir} }

// Distil lets a model write the gate of a plan from records, and judges it. The work is a run with the id of the plan. owner says that the
// owner typed the command, so that no limit of spending binds it. The errors are those of distil.Distil.Run.
func (h Home) Distil(ctx context.Context, p distil.Plan, records distil.Records, owner bool) (v distil.Verdict, err error) {
	asker, err := h.native(true)
	if err != nil {
		return v, err
	}
	runner := h.Runner(true)
	record := runlog.Record{
		ID: p.ID, Subject: runlog.Subject{Kind: "distil", Job: "distil", Name: "distil", Description: "Gate of " + p.Name},
		Mode: "distil", Engine: engine.Native, Model: p.Model, Owner: owner,
	}
	_, err = run.Work(ctx, runner, record, p.MaxCost, func(ctx context.Context, r *runlog.Run, raise run.Raise) error {
		box, err := h.newFilterBox(runner, p.ID)
		if err != nil {
			return err
		}
		d := &distil.Distil{
			Plan: p, Book: h.Distils(), Records: records, Start: box.start, Raise: raise, Hide: r.Hide,
			Asker: backtest.Asker{Engine: *asker, Sleep: h.app.Sleep, Spent: func(e runlog.Event) error {
				e.Context, e.Window, e.CompactAt = 0, 0, 0
				return r.Event(context.WithoutCancel(ctx), e) // it is paid for, whatever ends the work
			}},
		}
		v, err = d.Run(ctx)
		return errors.Join(err, box.close())
	})
	return v, err
}

// filterBox starts the deciding parts of gates, sealed and offline.
type filterBox struct {
	call  process.Call // without Argv; they read its Dir
	close func() error
}

// filterTime is the time limit of a deciding part.
const filterTime = 10 * time.Second

func (h Home) newFilterBox(r *run.Runner, id string) (b filterBox, err error) {
	dir, s, err := run.Offline(r, id)
	if err != nil {
		return b, fmt.Errorf("a gate is only judged sealed: %w", err)
	}
	call := process.Call{Dir: dir, Env: withoutKeys(h.ProgramEnv()), Seal: s}
	return filterBox{call, func() error { return errors.Join(s.Close(), os.RemoveAll(dir)) }}, nil
}

// start is a distil.Start.
func (b filterBox) start(ctx context.Context, script []byte, inputs []string) (exit distil.Exit, err error) {
	path := filepath.Join(b.call.Dir, "gate")
	if err := store.Write(path, script, store.Buffered); err != nil {
		return exit, err
	}
	for i, text := range inputs {
		if err := store.Write(filepath.Join(b.call.Dir, strconv.Itoa(i+1)), []byte(text), store.Buffered); err != nil {
			return exit, err
		}
	}
	late, cancel := context.WithTimeout(ctx, filterTime)
	defer cancel()
	c := b.call
	c.Argv = []string{"/bin/sh", path}
	result, err := process.Run(late, c)
	if err != nil && ctx.Err() == nil && late.Err() != nil {
		return distil.Exit{Status: -1}, nil
	}
	return distil.Exit{Status: result.Status, Said: result.Stderr}, err
}

// GateVerdict returns what is known about the gate of a job that ollim distil has written, as a sentence without a full stop; "" for
// another gate.
func (h Home) GateVerdict(j job.Job) string {
	if j.Gate == "" {
		return ""
	}
	text, err := store.Read(h.Dir.Gate(j.Gate))
	id := distil.Written(text)
	if err != nil || id == "" {
		return ""
	}
	v, err := h.Distils().Verdict(id)
	sum := sha256.Sum256(text)
	switch {
	case err != nil:
		return "the verdict about this gate cannot be read: " + err.Error()
	case v.Digest != hex.EncodeToString(sum[:]):
		return fmt.Sprintf("this gate is not as distil %s judged it", id)
	case !v.Accepted:
		return fmt.Sprintf("distil %s refused this gate", id)
	}
	return fmt.Sprintf("judged by distil %s on runs that the model had not seen: %s", id, v)
}
