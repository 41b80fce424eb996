package app

import (
	"context"
	"errors"
	"net/http"
	"os"

	"github.com/ollim/ollim/internal/agent/fire"
	"github.com/ollim/ollim/internal/agent/prompt"
	"github.com/ollim/ollim/internal/agent/replay"
	"github.com/ollim/ollim/internal/agent/run"
	"github.com/ollim/ollim/internal/agent/turn"
	"github.com/ollim/ollim/internal/engine/native"
	"github.com/ollim/ollim/internal/engine/provider"
	"github.com/ollim/ollim/internal/state/config"
	"github.com/ollim/ollim/internal/state/runlog"
)

// Replay builds the requests of a recorded run again and compares them with what was sent. The errors are those of replay.Replayer.Replay.
func (h Home) Replay(ctx context.Context, record runlog.Record) (replay.Result, error) {
	runner := h.Runner(true)
	r := replay.Replayer{
		Home: h.Dir, Runs: h.Runs, Asked: h.Requests, Sessions: h.Transcripts(), Objects: h.Objects, Agents: h.agents, Temp: os.TempDir(),
		Hide: func(text string) string { return h.secrets().Hide(text) },
		Again: func(record runlog.Record, past prompt.Past, system string) (a run.Again, err error) {
			if record.OfJob() {
				a, err = fire.New(runner).Again(record, past)
			} else {
				a, err = turn.New(runner).Again(record, past, system)
			}
			if errors.Is(err, fire.ErrNoFile) || errors.Is(err, turn.ErrNoTurn) {
				err = &replay.Unfit{Run: record.ID, Err: err}
			}
			return a, err
		},
		Engine: func(instead http.RoundTripper) (*native.Engine, error) {
			return h.nativeBy(true, func(c config.Service, _ credentials) (native.Service, error) {
				return serviceOf(c, provider.Options{BaseURL: c.BaseURL, Key: "none", Client: &http.Client{Transport: instead}}), nil
			})
		},
	}
	return r.Replay(ctx, record)
}
